#include "kube/model/json_text.hh"
#include "kube/server/json_path.hh"
#include "kube/tests/catch.hh"

TEST_CASE("JSONPaths of columns") {
  const kube::Json object = *kube::parse_json(R"({
    "spec": {"replicas": 3, "a.b": "dotted"},
    "status": {"restarts": 1, "phase": null, "conditions": [
      {"type": "Ready", "status": "False", "n": 1},
      {"type": "Completed", "status": "True", "last": true},
      {"type": "Completed", "reason": "again"}]}})");
  const struct {
    std::string path, value;  // "" where nothing is found
  } kCases[] = {
      {".spec.replicas", "3"},
      {".spec.a\\.b", "\"dotted\""},
      {".spec['a.b']", "\"dotted\""},
      {".spec.none", ""},
      {".spec.replicas.below", ""},
      {".status.phase", "null"},
      {".status['restartBudget','restarts']", "1"},
      {".status['restarts', 'restartBudget']", "1"},
      {".status.conditions[0].type", "\"Ready\""},
      {".status.conditions[-1:].type", "\"Completed\""},
      {".status.conditions[-1].reason", "\"again\""},
      {".status.conditions[1:2].status", "\"True\""},
      {".status.conditions[7].type", ""},
      {".status.conditions[*].reason", "\"again\""},
      {".status.conditions[?(@.type==\"Completed\")].status", "\"True\""},
      // This is the first item that has the member, among those for which the condition holds.
      {".status.conditions[?(@.type=='Completed')].reason", "\"again\""},
      {".status.conditions[?(@.type==\"Gone\")].status", ""},
      {".status.conditions[?(@.type!=\"Ready\")].status", "\"True\""},
      {".status.conditions[?(@.n==1)].type", "\"Ready\""},
      {".status.conditions[?(@.last==true)].type", "\"Completed\""},
      {".status.conditions[", ""},
      {".status.conditions[x].type", ""},
      {"spec", ""},
  };
  for (const auto& c : kCases) {
    INFO(c.path);
    const kube::Json* found = kube::server::find_json_path(object, c.path);
    CHECK((found == nullptr ? "" : kube::print_json(*found)) == c.value);
  }
  CHECK(kube::server::find_json_path(object, ".") == &object);
}
