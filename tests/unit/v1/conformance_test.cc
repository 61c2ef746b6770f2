// The recorded cases are replayed: upstream 1.9.3's results for V1 jobs must be those of plan().
// Values that the API server fills into stored pods and Services are left out of the comparison.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "tests/support/recorded_cases.hh"
#include "tests/support/source_root.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

using trainer::test::cleaned;
using trainer::test::difference;
using trainer::test::projected;
using trainer::test::without_defaults;

const std::string kFolder = trainer::test::source_root() + "/tests/conformance/v1/";

// These are additions of this project: the Service of a job's name, and the names of pods in it
// (docs/decisions/0056).
std::set<std::string> without_job_services(const World& world, const std::string& kind) {
  std::set<std::string> names;
  for (const std::string& name : world.names(kind)) {
    const Json& owners = world.at(kind + "/" + name).get("metadata").get("ownerReferences");
    const bool is_added = kind == "Service" && !owners.empty() &&
                          owners.as_array().front().get_string("name") == name;
    if (!is_added) names.insert(name);
  }
  return names;
}

void take_out_host_name(Json& pod) {
  const Json& owners = pod.get("metadata").get("ownerReferences");
  const std::string_view subdomain = pod.get("spec").get_string("subdomain");
  if (owners.empty() || owners.as_array().front().get_string("name") != subdomain) return;
  CHECK(pod["spec"].get_string("hostname") == pod["metadata"].get_string("name"));
  for (const char* member : {"hostname", "subdomain"}) pod["spec"].erase(member);
}

// These are extensions of this project, and what upstream leaves to chance.
Json without_extensions(Json status) {
  for (const char* name : {"firstFailure", "restarts", "restartedPods"})
    if (status.is_object()) status.erase(name);
  return status;
}

// This difference is fixed, too: a variable of user and operator is there once, with the value that
// counts.
void fix_variables(Json& pod) {
  for (Json& container : pod["spec"]["containers"].as_array()) {
    Json::Array once;
    for (const Json& variable : container.get_array("env")) {
      const auto before = std::find_if(once.begin(), once.end(), [&variable](const Json& other) {
        return other.get_string("name") == variable.get_string("name");
      });
      if (before == once.end())
        once.push_back(variable);
      else
        *before = variable;
    }
    if (!once.empty()) container.set("env", std::move(once));
  }
}

// These differences are fixed (docs/decisions/0056): Created is never lost, and PodGroups are not
// waited for by chance.
void fix_record(Json& theirs, const Json& own) {
  if (!own.find("lastReconcileTime")) theirs.erase("lastReconcileTime");
  Json& conditions = theirs["conditions"];
  if (conditions.empty() || conditions.as_array().front().get_string("type") != "Created") {
    Json fixed = Json::array({own.get_array("conditions").front()});
    for (const Json& one : theirs.get_array("conditions")) fixed.push_back(one);
    theirs.set("conditions", std::move(fixed));
  }
}

void compare_job(const Json& own, const Json& recorded, bool is_selector_free) {
  Json status = without_extensions(cleaned(own.get("status")));
  Json theirs = recorded.get("status");
  if (!own.get("status").empty() && theirs.is_object()) fix_record(theirs, status);
  if (is_selector_free && theirs.get("replicaStatuses").is_object())
    for (auto& [role, counters] : theirs["replicaStatuses"].as_object())
      counters.set("selector", status.get("replicaStatuses").get(role).get("selector"));
  CHECK(kube::print_json_pretty(status) == kube::print_json_pretty(theirs));
}

void compare_kind(const World& world, const std::string& kind, const Json& recorded,
                  const Json& members, bool is_selector_free) {
  const std::set<std::string> names = without_job_services(world, kind);
  std::set<std::string> theirs;
  for (const auto& [name, object] : recorded.as_object()) theirs.insert(name);
  CHECK(names == theirs);
  for (const std::string& name : names) {
    const Json* other = recorded.find(name);
    INFO(kind << " " << name);
    if (!other) continue;
    const Json& object = world.at(kind + "/" + name);
    if (find_framework(kind)) {
      compare_job(object, *other, is_selector_free);
      continue;
    }
    Json own = cleaned(object);
    if (kind == "Pod") take_out_host_name(own);
    kube::canonicalise_quantities(own);
    if (kind == "Service")
      std::sort(
          own["spec"]["ports"].as_array().begin(), own["spec"]["ports"].as_array().end(),
          [](const Json& a, const Json& b) { return a.get_string("name") < b.get_string("name"); });
    for (const char* member : {"apiVersion", "kind"}) own.erase(member);
    if (kind == "Pod")
      own.set("status", Json::object({{"phase", own["status"]["phase"]}}));
    else
      own.erase("status");
    Json theirs_fixed = *other;
    if (kind != "Pod") theirs_fixed.erase("status");
    if (kind == "Pod" && other->find("spec")) fix_variables(theirs_fixed);
    if (kind == "Pod" || kind == "Service") own = without_defaults(own);
    own = projected(own, members);
    CHECK(difference(own, theirs_fixed, "") == "");
  }
}

void compare_events(const World& world, const Json& recorded) {
  std::set<std::string> own(world.events.begin(), world.events.end());
  std::set<std::string> theirs;
  for (const auto& [text, component] : recorded.as_object()) theirs.insert(text);
  // Upstream's client drops events after the first 25: the record lacks some.
  std::erase_if(own, [&](const std::string& text) {
    return theirs.count(text) == 0 &&
           (text.find("ExitedWithCode") != text.npos || text.find("Succeeded") != text.npos ||
            text.find("SetPodTemplateEnvironment") != text.npos);
  });
  CHECK(own == theirs);
}

std::string key_of(const Json& step) {
  const std::string_view kind = step.get_string("kind");
  return fmt::format("{}/{}", kind.substr(0, kind.find('.')), step.get_string("name"));
}

// A wait that is about a time.
void pass_time(World& world, const Json& wait) {
  const std::string key = key_of(wait);
  const auto is_there = [&] {
    if (wait.get_string("path").empty()) return world.has(key) == (wait.get_int("equals") != 404);
    return true;
  };
  for (int i = 0; i < 60 && !is_there(); ++i) world.advance(1);
  CHECK(is_there());
}

void show(const World& world, const Json& step, const Json& shown, bool is_selector_free) {
  for (const auto& [kind, recorded] : shown.as_object()) {
    if (kind == "Event")
      compare_events(world, recorded);
    else
      compare_kind(world, kind.substr(0, kind.find('.')), recorded, step.get(kind),
                   is_selector_free);
  }
}

void apply_default(Json& object) {
  Json* policy = object["spec"].find("runPolicy");
  if (policy && !policy->find("suspend")) policy->set("suspend", false);
}

void replay(const std::string& name, const Settings& settings = {}) {
  const Json recorded = yaml(trainer::test::read_case(kFolder + name + ".yaml"));
  const auto answers = kube::parse_json(trainer::test::read_file(kFolder + name + ".expect.json"));
  REQUIRE(answers.has_value());
  const std::string base = std::filesystem::path(name).filename();
  World world(std::string("c-") + base);
  world.settings = settings;
  const Json::Array& steps = recorded.get_array("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& [verb, step] = *steps[i].as_object().begin();
    const Json& answer = answers->as_array().at(i);
    INFO(name << " step " << i << " " << verb);
    const auto code = answer.get_int("code");
    if (verb == "apply") {
      // 422 is the schema's.
      Json object = step;
      apply_default(object);
      if (code != 422) CHECK((world.apply(object) < 300) == (code < 300));
    } else if (verb == "patch" && step.get_string("type") == "json") {
      const auto patched = kube::apply_json_patch(world.at(key_of(step)), step.get("body"));
      REQUIRE(patched.has_value());
      CHECK(world.apply(*patched) == code);
    } else if (verb == "patch" && code != 422) {
      const bool is_scale = step.get_string("subresource") == "scale";
      const Json body =
          is_scale
              ? Json::object({{"spec", yaml(fmt::format(
                                           "{{{}: {{Worker: {{replicas: {}}}}}}}",
                                           find_framework(step.get_string("kind"))->replica_specs,
                                           step.get_path({"body", "spec", "replicas"}).as_int()))}})
              : step.get("body");
      CHECK((world.patch(key_of(step), body) < 300) == (code < 300));
    } else if (verb == "delete" && world.has(key_of(step))) {
      world.remove(key_of(step));
    } else if (verb == "pause") {
      world.advance(step.is_int() ? step.as_int() : 1);
    }
    world.settle();
    if (verb == "wait") pass_time(world, step);
    if (verb == "show") show(world, step, answer.get("shown"), recorded.find("free") != nullptr);
  }
}

}  // namespace

TEST_CASE("recorded cases of upstream 1.9.3") {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".yaml") names.insert(entry.path().stem());
  // A port without a name: upstream's Service is refused for ever, and the job has no status.
  names.erase("pt-defaults");
  for (const std::string& name : names) DYNAMIC_SECTION(name) {
      replay(name);
    }
  Settings settings;
  settings.gang_scheduler = "volcano";
  SECTION("volcano") {
    replay("volcano/gang-volcano", settings);
  }
  settings.gang_scheduler = "scheduler-plugins";
  SECTION("scheduler-plugins") {
    replay("scheduler-plugins/gang-scheduler-plugins", settings);
  }
}
