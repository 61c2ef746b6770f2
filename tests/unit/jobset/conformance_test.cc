// The recorded cases are replayed: the results of the JobSet controller on a control plane without
// nodes must be those of this project's defaults and one pass. Members that the API server fills
// into stored Jobs and Services are left out of the comparison: the members that this controller
// writes must be in the record, and names, labels, annotations and owners must be equal.
#include <fmt/format.h>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/yaml.hh"
#include "tests/support/recorded_cases.hh"
#include "tests/support/source_root.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

using trainer::test::read_case;
using trainer::test::read_file;

struct Case {
  std::string name;
  Json steps;    // the steps of the case
  Json answers;  // the answers of the record, one for each step
};

Case load(const std::string& name) {
  const std::string path = trainer::test::source_root() + "/tests/conformance/jobset/" + name;
  auto steps = kube::parse_yaml(read_case(path + ".yaml"));
  REQUIRE(steps.has_value());
  auto answers = kube::parse_json(read_file(path + ".expect.json"));
  REQUIRE(answers.has_value());
  return {name, (*steps)["steps"], *answers};
}

// The record replaces uids and times.
Json cleaned(const Json& value, std::string_view key = {}) {
  static const std::vector<std::string_view> kUids = {"uid", "jobset.sigs.k8s.io/jobset-uid"};
  if (std::find(kUids.begin(), kUids.end(), key) != kUids.end()) return "<uid>";
  if (key == "lastTransitionTime") return "<time>";
  if (value.is_object()) {
    Json result = Json::object();
    for (const auto& [name, member] : value.as_object()) result.set(name, cleaned(member, name));
    return result;
  }
  if (value.is_array()) {
    Json result = Json::array();
    for (const Json& item : value.as_array()) result.push_back(cleaned(item));
    return result;
  }
  return value;
}

// Every member of `own` is in `recorded`; lists are of one length. Returns the first path that
// does not, or "".
std::string missing(const Json& own, const Json& recorded, const std::string& path) {
  if (own.is_object()) {
    for (const auto& [name, member] : own.as_object()) {
      const Json* other = recorded.find(name);
      // The record leaves out empty maps and the Service's cluster IP.
      if (!other && (member.empty() || name == "clusterIP" || member == Json(false))) continue;
      if (!other) return path + "/" + name;
      if (auto problem = missing(member, *other, path + "/" + name); !problem.empty())
        return problem;
    }
    return {};
  }
  if (own.is_array()) {
    if (!recorded.is_array() || own.size() != recorded.size()) return path;
    for (std::size_t i = 0; i < own.size(); ++i) {
      auto problem =
          missing(own.as_array()[i], recorded.as_array()[i], fmt::format("{}/{}", path, i));
      if (!problem.empty()) return problem;
    }
    return {};
  }
  return own == recorded ? std::string() : path;
}

// The API server and the Job controller add labels of their own to pods.
Json without_foreign_labels(const Json& labels) {
  Json result = Json::object();
  for (const auto& [name, value] : labels.as_object()) {
    const bool is_foreign = name == "controller-uid" || name == "job-name" ||
                            name == "batch.kubernetes.io/controller-uid" ||
                            name == "batch.kubernetes.io/job-name";
    if (!is_foreign) result.set(name, value);
  }
  return result;
}

void compare_job(const Json& own, const Json& recorded) {
  CHECK(*own.find("metadata") == *recorded.find("metadata"));
  const Json& own_template = *own.find_path({"spec", "template"});
  const Json& their_template = *recorded.find_path({"spec", "template"});
  CHECK(*own_template.find_path({"metadata", "annotations"}) ==
        *their_template.find_path({"metadata", "annotations"}));
  CHECK(*own_template.find_path({"metadata", "labels"}) ==
        without_foreign_labels(*their_template.find_path({"metadata", "labels"})));
  CHECK(missing(*own.find("spec"), *recorded.find("spec"), "spec") == "");
}

// Compares the objects of one kind in the world and in the record.
void compare_kind(const std::map<std::string, Json>& own, const Json& recorded,
                  const std::string& ns, bool are_jobs) {
  REQUIRE(own.size() == recorded.size());
  for (const auto& [name, object] : own) {
    INFO(name);
    const Json* other = recorded.find(name);
    REQUIRE(other);
    Json mine = cleaned(object);
    mine["metadata"]["namespace"] = ns;
    mine["metadata"].erase("resourceVersion");
    if (are_jobs) {
      mine["metadata"].erase("uid");
      // Keys hold the namespace, which is another one here.
      const Json* key = other->find_path({"metadata", "labels", "jobset.sigs.k8s.io/job-key"});
      REQUIRE(key);
      for (const char* where : {"labels", "annotations"}) {
        mine["metadata"][where]["jobset.sigs.k8s.io/job-key"] = *key;
        mine["spec"]["template"]["metadata"][where]["jobset.sigs.k8s.io/job-key"] = *key;
      }
      compare_job(mine, *other);
    } else {
      CHECK(*mine.find("metadata") == *other->find("metadata"));
      CHECK(missing(*mine.find("spec"), *other->find("spec"), "spec") == "");
    }
  }
}

void compare_status(const World& world, const Json& shown) {
  const Json* recorded = shown.find("status");
  const Json* own = world.jobset().find("status");
  if (!recorded) {
    CHECK((own == nullptr || own->empty()));
    return;
  }
  REQUIRE(own);
  CHECK(kube::print_json_pretty(cleaned(*own)) == kube::print_json_pretty(*recorded));
}

void compare_spec(const World& world, const Json& shown) {
  CHECK(missing(*world.jobset().find("spec"), *shown.find("spec"), "spec") == "");
  CHECK(missing(*shown.find("spec"), *world.jobset().find("spec"), "spec") == "");
}

// The Job controller would have started the pods of a Job that is not suspended.
void start_pods(World& world) {
  world.settle();
  for (const auto& name : world.job_names()) {
    const bool is_suspended = world.job(name).find("spec")->get_bool("suspend");
    world.set_status(name, Json::object({{"active", is_suspended ? 0 : 1}}));
  }
  world.settle();
}

}  // namespace

TEST_CASE("recorded: a JobSet applied, and what came of it") {
  for (const char* name :
       {"js-basic", "js-depends", "js-exclusive", "js-managed", "js-network", "js-startup"}) {
    INFO(name);
    Case recorded = load(name);
    Json& steps = recorded.steps;
    const Json& shown = *recorded.answers.as_array().back().find("shown");
    std::map<std::string, Json> jobs, services, claims;
    for (Json& step : steps.as_array()) {
      const Json* applied = step.find("apply");
      if (!applied) continue;
      World world(kube::print_yaml(*applied));
      start_pods(world);
      jobs.insert(world.jobs().begin(), world.jobs().end());
      services.insert(world.services.begin(), world.services.end());
      claims.insert(world.claims.begin(), world.claims.end());
      const std::string jobset(applied->find("metadata")->get_string("name"));
      const Json* stored = shown.find_path({"JobSet", jobset});
      REQUIRE(stored);
      compare_status(world, *stored);
      compare_spec(world, *stored);
    }
    const std::string ns = std::string("c-") + name;
    compare_kind(jobs, *shown.find("Job"), ns, true);
    compare_kind(services, *shown.find("Service"), ns, false);
    CHECK(claims.size() == shown.find("PersistentVolumeClaim")->size());
  }
}

TEST_CASE("recorded: suspended, resumed with a changed template, suspended again") {
  Case recorded = load("js-suspended");
  const Json::Array& answers = recorded.answers.as_array();
  Json& steps = recorded.steps;
  REQUIRE(steps.size() == 7);
  World world(kube::print_yaml(*steps.as_array()[0].find("apply")));
  start_pods(world);
  // The Jobs are held back: the record has a suspended Job and a Service, which is a departure; the
  // status is the same.
  CHECK(world.jobs().empty());
  CHECK(world.services.empty());
  compare_status(world, *answers[1].find_path({"shown", "JobSet", "s"}));

  Json& pod = world.jobset()["spec"]["replicatedJobs"]
                  .as_array()[0]["template"]["spec"]["template"]["spec"];
  pod["nodeSelector"] = Json::object({{"pool", "a"}});
  world.set_suspend(false);
  start_pods(world);
  const auto compare_all = [&](const Json& answer) {
    const Json& shown = *answer.find("shown");
    compare_status(world, *shown.find_path({"JobSet", "s"}));
    compare_kind(world.jobs(), *shown.find("Job"), "c-js-suspended", true);
    compare_kind(world.services, *shown.find("Service"), "c-js-suspended", false);
  };
  compare_all(answers[4]);
  world.set_suspend(true);
  start_pods(world);
  compare_all(answers[6]);
}
