// Defaults of the mutating webhook: rows W1 to W5, W9, W17 and W28 of the acceptance checklist.
#include "kube/model/json_text.hh"
#include "tests/unit/jobset/admission_support.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

TEST_CASE("W1 to W5, W9, W17, W28: defaults") {
  struct Row {
    const char* about;
    std::string yaml;
    std::vector<const char*> path;  // below spec; numbers are indices
    Json expected;
  };
  const std::string kept = with_jobs(
      "{name: w, template: {spec: {completionMode: NonIndexed, template: {spec: {restartPolicy: "
      "Never}}}}}",
      "network: {enableDNSHostnames: false, publishNotReadyAddresses: false}, successPolicy: "
      "{operator: Any}, startupPolicy: {startupPolicyOrder: InOrder}, failurePolicy: {rules: "
      "[{name: "
      "mine, action: FailJobSet}]}, volumeClaimPolicies: [{templates: [], retentionPolicy: "
      "{whenDeleted: Retain}}]");
  const std::string bare = with_jobs(kT.empty() ? "" : "{name: w, " + kT + "}",
                                     "failurePolicy: {rules: [{action: FailJobSet}, {action: "
                                     "RestartJobSet}]}, volumeClaimPolicies: "
                                     "[{templates: []}]");
  const Row rows[] = {
      {"W1", bare, {"replicatedJobs", "0", "template", "spec", "completionMode"}, "Indexed"},
      {"W2", kept, {"replicatedJobs", "0", "template", "spec", "completionMode"}, "NonIndexed"},
      {"W3", bare, {"network", "enableDNSHostnames"}, true},
      {"W3 kept", kept, {"network", "enableDNSHostnames"}, false},
      {"W4", bare, {"network", "publishNotReadyAddresses"}, true},
      {"W4 kept", kept, {"network", "publishNotReadyAddresses"}, false},
      {"W5",
       bare,
       {"replicatedJobs", "0", "template", "spec", "template", "spec", "restartPolicy"},
       "OnFailure"},
      {"W5 kept",
       kept,
       {"replicatedJobs", "0", "template", "spec", "template", "spec", "restartPolicy"},
       "Never"},
      {"W9", bare, {"successPolicy"}, Json::object({{"operator", "All"}})},
      {"W9 kept", kept, {"successPolicy", "operator"}, "Any"},
      {"startup", bare, {"startupPolicy", "startupPolicyOrder"}, "AnyOrder"},
      {"startup kept", kept, {"startupPolicy", "startupPolicyOrder"}, "InOrder"},
      {"W17", bare, {"failurePolicy", "restartStrategy"}, "Recreate"},
      {"rule names", bare, {"failurePolicy", "rules", "1", "name"}, "failurePolicyRule1"},
      {"rule names kept", kept, {"failurePolicy", "rules", "0", "name"}, "mine"},
      {"W28", bare, {"volumeClaimPolicies", "0", "retentionPolicy", "whenDeleted"}, "Delete"},
      {"W28 kept", kept, {"volumeClaimPolicies", "0", "retentionPolicy", "whenDeleted"}, "Retain"},
      {"group", bare, {"replicatedJobs", "0", "groupName"}, "default"},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    const Json object = defaulted(row.yaml);
    const Json* at = object.find("spec");
    for (const char* step : row.path) {
      REQUIRE(at);
      at = at->is_array() ? &at->as_array().at(static_cast<std::size_t>(*step - '0'))
                          : at->find(step);
    }
    REQUIRE(at);
    CHECK(*at == row.expected);
  }
  CHECK(defaulted(bare).find("spec")->find("suspend") == nullptr);
}

TEST_CASE("what lacks a default differs from what lacks none") {
  const auto read = [](const std::string& json) { return *kube::parse_json(json); };
  // Each "@" is before the value that a default would put there.
  const std::string text =
      R"({"spec":{@"successPolicy":{"operator":"All"},@"startupPolicy":{"startupPolicyOrder":"AnyOrder"},)"
      R"("replicatedJobs":[{"template":{"spec":{@"completionMode":"Indexed",)"
      R"("template":{"spec":{@"restartPolicy":"OnFailure","x":1}}}}}],)"
      R"("failurePolicy":{"rules":[{@"name":"failurePolicyRule0","x":1}]},)"
      R"("volumeClaimPolicies":[{@"retentionPolicy":{"whenDeleted":"Delete"},"x":1}]}})";
  std::string complete;
  std::vector<std::size_t> places;
  for (const char c : text) {
    if (c == '@') {
      places.push_back(complete.size());
    } else {
      complete += c;
    }
  }
  REQUIRE(places.size() == 6);
  CHECK_FALSE(lacks_late_defaults(read(complete)));
  Json unchanged = read(complete);
  apply_late_defaults(unchanged);
  CHECK(unchanged == read(complete));  // a new default must be requested, too
  for (const std::size_t at : places) {
    std::string other = complete;
    other.insert(at + 1, "un");  // a member of another name
    INFO(other);
    Json object = read(other);
    CHECK(lacks_late_defaults(object));
    apply_late_defaults(object);
    CHECK_FALSE(lacks_late_defaults(object));
  }
  for (const char* empty : {R"({"spec":{}})", "{}", "7"}) CHECK(lacks_late_defaults(read(empty)));
}

TEST_CASE("defaults leave what is of a wrong type to the schema, and are idempotent") {
  for (const char* text :
       {"null", "[]", "7", R"({"spec":7})", R"({"spec":{"network":[],"replicatedJobs":{}}})",
        R"({"spec":{"replicatedJobs":[7,{"template":"x"},{"template":{"spec":[]}},)"
        R"({"template":{"spec":{"template":{"spec":1}}}}],"failurePolicy":{"rules":[1]},)"
        R"("volumeClaimPolicies":[null]}})",
        R"({"spec":{"failurePolicy":null}})"}) {
    INFO(text);
    Json object = *kube::parse_json(text);
    apply_webhook_defaults(object);
    const Json once = object;
    apply_webhook_defaults(object);
    CHECK(object == once);
  }
}
