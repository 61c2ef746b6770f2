// The recorded cases are replayed: mpi-operator 0.8.2's results for MPIJobs must be those of
// plan(). Values that the API server fills into stored objects are left out of the comparison.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"
#include "tests/support/recorded_cases.hh"
#include "tests/support/source_root.hh"
#include "tests/unit/mpijob/replay.hh"

namespace trainer::mpijob::test {
namespace {

using kube::Json;

const std::string kFolder = trainer::test::source_root() + "/tests/conformance/mpi-v2/";

// "MPIJob.v2beta1.kubeflow.org" -> "MPIJob"
std::string kind_of(std::string_view name) {
  return std::string(name.substr(0, name.find('.')));
}

std::string key_of(const Json& step) {
  return fmt::format("{}/{}", kind_of(step.get_string("kind")), step.get_string("name"));
}

// Removes what the API server derives, and what only says how a Job is tracked.
Json without_derived(const std::string& kind, Json object) {
  for (const char* member : {"apiVersion", "kind"}) object.erase(member);
  if (object.find("metadata")) object["metadata"].erase("creationTimestamp");
  if (kind == "Secret") {
    for (auto& [key, value] : object["data"].as_object()) value = "<data>";
    object.erase("type");
  }
  if (kind == "Pod") {
    object.set("status", Json::object({{"phase", object.get("status").get_string("phase")}}));
  } else if (kind != "MPIJob") {
    object.erase("status");
  }
  if (kind == "Job" && object.find("spec")) {
    Json& spec = object["spec"];
    for (const char* member :
         {"completionMode", "completions", "manualSelector", "parallelism", "selector", "suspend"})
      spec.erase(member);
    if (spec.get_int("backoffLimit") == 6) spec.erase("backoffLimit");
    Json& metadata = spec["template"]["metadata"];
    metadata.erase("ownerReferences");
    for (const char* label : {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
                              "controller-uid", "job-name"})
      metadata["labels"].erase(label);
  }
  return kind == "Pod" || kind == "Service" || kind == "Job"
             ? trainer::test::without_defaults(std::move(object))
             : object;
}

// The Job controller makes the launcher's pods. Their phases count here, since the Job is compared.
bool is_of_job(const Json& object) {
  return !object.get("metadata").get_string("generateName").empty();
}

void compare_object(const std::string& kind, const Json& own, const Json& recorded,
                    const Json& members) {
  Json mine = without_derived(kind, trainer::test::cleaned(own));
  Json theirs = without_derived(kind, recorded);
  if (kind == "MPIJob") {
    // Pod templates have the API server's defaults.
    CHECK(trainer::test::difference(mine.get("status"), theirs.get("status"), "") == "");
    return;
  }
  mine = trainer::test::projected(mine, members);
  theirs = trainer::test::projected(theirs, members);
  if (is_of_job(own) || (kind == "Pod" && !recorded.find("spec"))) {
    CHECK(mine.get("status") == theirs.get("status"));
    return;
  }
  CHECK(trainer::test::difference(mine, theirs, "") == "");
}

// An object that is in the way of a job ends a reconcile of mpi-operator, which writes no status
// then (docs/decisions/0071).
bool departs(const std::string& name, const std::string& kind) {
  return name == "in-the-way" && kind != "Event";
}

void compare_events(const Replay& replay, const Json& recorded) {
  std::set<std::string> own;
  for (std::string text : replay.events) {
    // mpi-operator leaves the kind empty, and the record has a placeholder.
    const std::size_t at = text.find("of Kind \"");
    if (at != text.npos) {
      const std::size_t from = at + std::string_view("of Kind \"").size();
      text.replace(from, text.find('"', from) - from, "<kind>");
    }
    if (text.starts_with("MPIJob ")) own.insert(std::move(text));
  }
  std::set<std::string> theirs;
  for (const auto& [text, component] : recorded.as_object()) theirs.insert(text);
  CHECK(own == theirs);
}

void show(const std::string& name, const Replay& replay, const Json& step, const Json& shown) {
  for (const auto& [title, recorded] : shown.as_object()) {
    const std::string kind = kind_of(title);
    if (departs(name, kind)) continue;
    if (kind == "Event") {
      compare_events(replay, recorded);
      continue;
    }
    const auto objects = replay.shown(kind);
    std::set<std::string> own, theirs;
    for (const auto& [key, object] : objects) own.insert(key);
    for (const auto& [key, object] : recorded.as_object()) theirs.insert(key);
    INFO(title);
    CHECK(own == theirs);
    const Json& members = step.is_object() ? step.get(title) : Json();
    for (const auto& [key, object] : objects) {
      INFO(key);
      if (const Json* other = recorded.find(key); other && !(members.is_array() && members.empty()))
        compare_object(kind, object, *other, members);
    }
  }
}

// The value at a path such as status.conditions.-1.type.
Json value_at(const Json& object, std::string_view path) {
  const Json* at = &object;
  while (!path.empty()) {
    const std::string_view step = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), step.size() + 1));
    if (!at->is_array())
      at = &at->get(step);
    else if (at->empty())
      return {};
    else
      at =
          step == "-1" ? &at->as_array().back() : &at->as_array().at(std::stoul(std::string(step)));
  }
  return *at;
}

void wait_for(Replay& replay, const Json& step) {
  const std::string_view path = step.get_string("path");
  const auto is_there = [&] {
    const std::string key = replay.find(key_of(step));
    if (path.empty()) return key.empty() == (step.get_int("equals") == 404);
    if (key.empty()) return false;
    return value_at(replay.objects.at(key), path) == step.get("equals") || path == "metadata.name";
  };
  for (int i = 0; i < 120 && !is_there(); ++i) replay.advance(1);
  CHECK(is_there());
}

void replay_case(const std::string& name, MPISettings settings = {}) {
  const auto recorded = kube::parse_yaml(trainer::test::read_case(kFolder + name + ".yaml"));
  const auto answers = kube::parse_json(trainer::test::read_file(kFolder + name + ".expect.json"));
  REQUIRE(recorded);
  REQUIRE(answers);
  Replay replay("c-" + std::filesystem::path(name).filename().string(), std::move(settings));
  const Json::Array& steps = recorded->get_array("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& [verb, step] = *steps[i].as_object().begin();
    const Json& answer = answers->as_array().at(i);
    INFO(name << " step " << i << " " << verb << " " << kube::print_json(step).substr(0, 200));
    if (verb == "apply") {
      CHECK(replay.apply(step) == (answer.get_int("code") < 300));
    } else if (verb == "patch") {
      CHECK(replay.patch(replay.find(key_of(step)), step.get("body"),
                         step.get_string("type") != "json") == (answer.get_int("code") < 300));
    } else if (verb == "delete") {
      replay.remove(replay.find(key_of(step)));
    } else if (verb == "pause") {
      replay.advance(static_cast<int>(step.as_int()));
    } else if (verb == "wait") {
      wait_for(replay, step);
    } else {
      show(name, replay, step, answer.get("shown"));
    }
  }
}

}  // namespace

TEST_CASE("recorded cases of mpi-operator 0.8.2") {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".yaml") names.insert(entry.path().stem());
  REQUIRE(names.size() >= 15);
  for (const std::string& name : names) DYNAMIC_SECTION(name) {
      replay_case(name);
    }
  SECTION("volcano") {
    replay_case("volcano/gang-volcano", {.gang_scheduler = "volcano", .cluster_domain = ""});
  }
  SECTION("scheduler-plugins") {
    replay_case("scheduler-plugins/gang-scheduler-plugins",
                {.gang_scheduler = "scheduler-plugins", .cluster_domain = ""});
  }
}

}  // namespace trainer::mpijob::test
