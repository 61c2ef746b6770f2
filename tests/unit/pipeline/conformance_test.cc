// Replays the recorded cases (tests/conformance/cases) without a cluster: the results of upstream's
// controllers for each TrainJob are compared with those of the pipeline, after the same cleaning as
// in conform.py.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/tests/merge_patch.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;

// Returns a built object in conform.py's form, once the API server has stored it.
Json shown(Json object, const DependentObject* dependent) {
  const std::string kind(object.get_string("kind"));
  apply_schema_defaults(object);
  object["metadata"].set("ownerReferences",
                         Json::array({Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                                                    {"kind", "TrainJob"},
                                                    {"name", "j"},
                                                    {"uid", "<uid>"},
                                                    {"controller", true},
                                                    {"blockOwnerDeletion", true}})}));
  object.erase("apiVersion");
  object.erase("kind");
  if (kind == "JobSet") object.set("spec", without_empty(*object.find("spec")));
  if (kind != "Secret") return object;
  // The executor fills the key pair in.
  if (dependent->generate == DependentObject::Generate::kSshKeyPair)
    object["data"].set("ssh-privatekey", "").set("ssh-publickey", "");
  for (auto& [name, value] : object["data"].as_object()) value = "<data>";
  return object;
}

void diff(const Json& want, const Json& got, const std::string& path,
          std::map<std::string, std::string>& out) {
  if (want == got) return;
  if (want.is_object() && got.is_object()) {
    std::set<std::string> names;
    for (const auto& [name, value] : want.as_object()) names.insert(name);
    for (const auto& [name, value] : got.as_object()) names.insert(name);
    static const Json kMissing = "<missing>";
    for (const std::string& name : names) {
      const Json* a = want.find(name);
      const Json* b = got.find(name);
      diff(a == nullptr ? kMissing : *a, b == nullptr ? kMissing : *b, path + "/" + name, out);
    }
    return;
  }
  if (want.is_array() && got.is_array() && want.size() == got.size()) {
    for (std::size_t i = 0; i < want.size(); ++i)
      diff(want.as_array()[i], got.as_array()[i], path + "/" + std::to_string(i), out);
    return;
  }
  out[path] = "want " + kube::print_json(want) + " got " + kube::print_json(got);
}

// These objects are in the cluster while a case is replayed.
struct Cluster {
  std::string ns;
  std::map<std::string, Json> runtimes;  // "Kind/name"
  std::map<std::string, Json> jobs;
  std::map<std::string, Json> snapshots;  // the runtime a job started with

  void store(Json object) {
    apply_schema_defaults(object);
    const std::string kind(object.get_string("kind"));
    const std::string name(object.find("metadata")->get_string("name"));
    if (kind != "TrainJob") {
      runtimes[kind + "/" + name] = std::move(object);
      return;
    }
    object["metadata"].set("namespace", ns);
    const Json* ref = object.find_path({"spec", "runtimeRef"});
    const auto found = runtimes.find(std::string(ref->get_string("kind")) + "/" +
                                     std::string(ref->get_string("name")));
    REQUIRE(found != runtimes.end());
    snapshots.emplace(name, found->second);
    jobs[name] = std::move(object);
  }

  Json objects() const {
    Json out = Json::object();
    for (const char* kind : {"JobSet", "ConfigMap", "Secret", "PodGroup.scheduling.x-k8s.io",
                             "PodGroup.scheduling.volcano.sh"})
      out.set(kind, Json::object());
    for (const auto& [name, object] : jobs) {
      const TrainJob job = trainjob(object);
      if (job.spec.managedBy != kTrainJobController) continue;
      const Built result = built(job, runtime(snapshots.at(name)));
      out["JobSet"].set(name, shown_of(result.jobset, nullptr, name));
      for (const DependentObject& one : result.dependents) {
        std::string kind = one.resource.kind;
        if (kind == "PodGroup") kind += "." + one.resource.group;
        out[kind].set(one.object.find("metadata")->get_string("name"),
                      shown_of(one.object, &one, name));
      }
    }
    return out;
  }

  static Json shown_of(const Json& object, const DependentObject* dependent,
                       const std::string& job) {
    Json out = shown(object, dependent);
    out["metadata"]["ownerReferences"].as_array()[0].set("name", job);
    return out;
  }
};

// These are the kinds that the pipeline makes, without those that it leaves to others.
Json recorded(const Json& answer) {
  Json out = *answer.find("shown");
  out.erase("TrainJob");
  for (auto& [name, jobset] : out["JobSet"].as_object()) jobset.erase("status");
  out["ConfigMap"].as_object().keep_if(
      [](const auto& map) { return !map.first.ends_with("-runtime-snapshot"); });
  return out;
}

bool is_meant(const std::string& name, const std::string& path, const Json& departures) {
  const auto& list = departures.as_array();
  return std::any_of(list.begin(), list.end(), [&](const Json& one) {
    std::string glob(one.get_string("case"));
    glob = std::regex_replace(glob, std::regex(R"(\*)"), ".*");
    return std::regex_match(name, std::regex(glob)) &&
           std::regex_search(path, std::regex(std::string(one.get_string("path"))));
  });
}

// Differences between a case and the pipeline: path -> what.
std::map<std::string, std::string> replay(const std::string& name) {
  const Json case_ = yaml_file("tests/conformance/cases/" + name + ".yaml");
  const auto answers =
      kube::parse_json(text_of_file("tests/conformance/cases/" + name + ".expect.json"));
  REQUIRE(answers);
  Cluster cluster{"c-" + name, {}, {}, {}};
  std::map<std::string, std::string> differences;
  const auto& steps = case_.get_array("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json& answer = answers->as_array()[i];
    if (answer.find("shown") != nullptr) {
      diff(recorded(answer), cluster.objects(), "/" + std::to_string(i) + "/shown", differences);
    } else if (answer.get_int("code") >= 400) {
      continue;  // refused: the objects stay as they are
    } else if (const Json* applied = steps[i].find("apply")) {
      cluster.store(*applied);
    } else if (const Json* patch = steps[i].find("patch"); patch != nullptr) {
      Json& job = cluster.jobs.at(std::string(patch->get_string("name")));
      job = kube::test::merge_patch(job, *patch->find("body"));
    }
  }
  return differences;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(test::source_root() + "/tests/conformance/cases"))
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("the pipeline makes of every recorded job what upstream made of it", "[conformance]") {
  const Json departures = yaml_file("tests/conformance/departures.yaml");
  const auto names = cases();
  REQUIRE(names.size() >= 26);
  // A broad departure cannot hide a mistake: these cases differ, and no other.
  const std::set<std::string> departing = {"flux",     "mpi-launcher-node", "patch-gate",
                                           "snapshot", "torch-labels",      "torch-no-trainer"};
  std::set<std::string> differing;
  for (const std::string& name : names) {
    INFO(name);
    for (const auto& [path, what] : replay(name)) {
      differing.insert(name);
      INFO(path << ": " << what);
      CHECK(is_meant(name, path, departures));
    }
  }
  CHECK(differing == departing);
}

TEST_CASE("admission refuses the recorded jobs and runtimes that upstream refused",
          "[conformance]") {
  std::size_t refusals = 0;
  for (const std::string& name : cases()) {
    if (name == "missing-runtime" || name == "patch-gate")
      continue;  // these need the cluster's state
    INFO(name);
    const Json case_ = yaml_file("tests/conformance/cases/" + name + ".yaml");
    const auto answers =
        kube::parse_json(text_of_file("tests/conformance/cases/" + name + ".expect.json"));
    REQUIRE(answers);
    Cluster cluster{"c-" + name, {}, {}, {}};
    const auto& steps = case_.get_array("steps");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json* applied = steps[i].find("apply");
      const std::int64_t code = answers->as_array()[i].get_int("code");
      if (applied == nullptr || code == 422) continue;  // the schema's business
      INFO(kube::print_json(*applied));
      kube::FieldErrors errors;
      if (applied->get_string("kind") != "TrainJob") {
        errors = validate_runtime(runtime(*applied));
        if (errors.empty()) cluster.store(*applied);
      } else {
        const TrainJob job = trainjob(*applied);
        const std::string key = *job.spec.runtimeRef.kind + "/" + job.spec.runtimeRef.name;
        errors = validate_trainjob(job, nullptr, runtime(cluster.runtimes.at(key)));
      }
      CHECK(errors.empty() == (code < 400));
      refusals += errors.empty() ? 0U : 1U;
    }
  }
  CHECK(refusals >= 6);
}

}  // namespace
}  // namespace trainer::test
