#include "tests/simulation/users.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "tests/simulation/job_status.hh"

namespace trainer::simulation {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::ObjectMeta;

constexpr std::string_view kQueueManager = "kueue.x-k8s.io/manager";

const kube::Resource& runtime_kind(const Lineage& lineage) {
  return lineage.runtime.find("metadata")->find("namespace") ? kTrainingRuntimes
                                                             : kClusterTrainingRuntimes;
}

Json patches(Json replicated_jobs) {
  Json spec = Json::object();
  if (!replicated_jobs.is_null()) spec.set("replicatedJobs", std::move(replicated_jobs));
  Json runtime = Json::object({{"template", Json::object({{"spec", std::move(spec)}})}});
  Json entry = Json::object({{"manager", kQueueManager}});
  entry.set("trainingRuntimeSpec", std::move(runtime));
  return Json::array({std::move(entry)});
}

}  // namespace

Users::Users(Timeline& timeline, ApiStore& store, Oracle& oracle, Chance& chance,
             const Script& script, seconds busy, Trace trace)
    : timeline_(timeline),
      store_(store),
      oracle_(oracle),
      chance_(chance),
      busy_(busy),
      trace_(std::move(trace)) {
  for (const Lineage& lineage : script.lineages) plan(lineage);
}

void Users::at(milliseconds when, std::function<void()> act) {
  timeline_.after(std::min<milliseconds>(when, busy_), std::move(act));
}

milliseconds Users::any_time() {
  return chance_.wait(1'000, static_cast<int>(milliseconds(busy_).count()) - 1'000);
}

const kube::Resource& Users::resource_of(const Lineage& lineage) const {
  return *store_.find_kind(lineage.is_trainjob ? "trainjobs" : "jobsets");
}

void Users::plan(const Lineage& lineage) {
  plan_obstacle(lineage);
  if (lineage.is_trainjob) plan_runtime(lineage);
  plan_queue(lineage);
  plan_mischief(lineage);
  if (lineage.is_elastic) plan_sizes(lineage);
}

// Another client's object with a name that one of the job's children needs.
void Users::plan_obstacle(const Lineage& lineage) {
  if (!chance_.percent(15)) return;
  const std::string& name = lineage.key.name;
  std::vector<std::pair<std::string, std::string>> kinds = {{"services", name},
                                                            {"jobs", name + "-node-0"}};
  if (lineage.is_trainjob) {
    kinds.emplace_back("jobsets", name);
    kinds.emplace_back("configmaps", name + "-runtime-snapshot");
  }
  const auto [plural, child] = chance_.pick(kinds);
  Json object =
      Json::object({{"metadata", Json::object({{"name", child}, {"namespace", lineage.key.ns}})}});
  Json spec = Json::object();
  if (plural == "jobsets") {
    spec.set("managedBy", "example.com/somebody");
    spec.set("replicatedJobs", Json::array());
  } else if (plural == "jobs") {
    spec.set("suspend", true).set("template", Json::object());
  }
  object.set("spec", std::move(spec));
  const Answer made = store_.create(Actor::kUser, *store_.find_kind(plural), std::move(object));
  oracle_.declare_foreign(ObjectMeta::of(made.body).uid);
  at(any_time(), [this, plural, key = ObjectKey{lineage.key.ns, child}] {
    trace_(fmt::format("removes the obstacle {} {}", plural, key.to_string()));
    store_.erase(Actor::kUser, plural, key);
  });
}

void Users::plan_runtime(const Lineage& lineage) {
  const auto& resource = runtime_kind(lineage);
  const ObjectKey key = ObjectMeta::of(lineage.runtime).key();
  const auto upsert = [this, resource, runtime = lineage.runtime] { create(resource, runtime); };
  at(chance_.percent(85) ? milliseconds(0) : chance_.wait(1'000, 30'000), upsert);
  const int choice = chance_.below(100);
  if (choice < 25) {
    const auto when = any_time();
    at(when, [this, resource, key] { remove(resource.plural, key); });
    at(when + chance_.wait(1'000, 60'000), upsert);
  } else if (choice < 45) {
    at(any_time(), [this, resource, key] {
      trace_("edits the runtime " + key.name);
      const Json patch =
          Json::object({{"spec", Json::object({{"mlPolicy", Json::object({{"numNodes", 7}})}})}});
      store_.merge(Actor::kUser, resource, key, patch, "");
    });
  } else if (choice < 60) {
    const ObjectKey snapshot{lineage.key.ns, lineage.key.name + "-runtime-snapshot"};
    at(any_time(), [this, snapshot] { remove("configmaps", snapshot); });
  }
  at(busy_, upsert);
}

// Suspended at birth, admitted, evicted and admitted again, or never queued at all.
void Users::plan_queue(const Lineage& lineage) {
  const bool is_queued = chance_.percent(60);
  Json object = lineage.object;
  const bool is_born_suspended = is_queued && chance_.percent(70);
  if (is_born_suspended) {
    object["spec"].set("suspend", true);
    if (lineage.is_trainjob) object["spec"].set("runtimePatches", patches({}));
  }
  auto when = chance_.wait(0, 20'000);
  at(when, [this, &lineage, object] { create(resource_of(lineage), object); });
  when += chance_.wait(50, 30'000);
  if (is_born_suspended) at(when, [this, &lineage] { set_suspended(lineage, false); });
  const int evictions = is_queued ? chance_.below(3) : 0;
  for (int i = 0; i < evictions; ++i) {
    when += chance_.wait(50, 40'000);
    at(when, [this, &lineage] { set_suspended(lineage, true); });
    if (lineage.is_trainjob && chance_.percent(70)) {
      at(when + chance_.wait(100, 10'000), [this, &lineage] { take_back_admission(lineage); });
    }
    when += chance_.wait(50, 30'000);
    at(when, [this, &lineage] { set_suspended(lineage, false); });
  }
  if (lineage.is_deleted) {
    at(when + chance_.wait(0, 60'000),
       [this, &lineage] { remove(resource_of(lineage).plural, lineage.key); });
  } else {
    const bool is_kept = lineage.ending == Ending::kSuspended;
    timeline_.after(busy_ + milliseconds(1),
                    [this, &lineage, is_kept] { set_suspended(lineage, is_kept); });
  }
}

void Users::plan_mischief(const Lineage& lineage) {
  const auto some = [this](int chance, int most) {
    return chance_.percent(chance) ? chance_.between(1, most) : 0;
  };
  for (int i = some(30, 3); i > 0; --i) {
    at(any_time(), [this, &lineage] { remove_any_child(lineage, "jobs"); });
  }
  for (int i = some(15, 2); i > 0; --i) {
    at(any_time(), [this, &lineage] { remove("services", lineage.key); });
  }
  for (int i = some(40, 4); i > 0; --i) at(any_time(), [this, &lineage] { label(lineage); });
  if (lineage.is_trainjob) {
    for (int i = some(15, 2); i > 0; --i) {
      at(any_time(), [this, &lineage] { remove("jobsets", lineage.key); });
    }
  }
}

void Users::plan_sizes(const Lineage& lineage) {
  for (int i = chance_.below(6); i > 0; --i) {
    const int nodes = chance_.between(lineage.least_nodes, lineage.most_nodes);
    at(any_time(), [this, &lineage, nodes] { scale(lineage, nodes); });
  }
}

void Users::create(const kube::Resource& resource, Json object) {
  const auto key = ObjectMeta::of(object).key();
  if (store_.find(resource.plural, key)) return;
  trace_(fmt::format("creates {} {}", resource.kind, key.to_string()));
  store_.create(Actor::kUser, resource, std::move(object));
}

// Returns what a queue says about where the pods may run.
Json Users::admission(const Lineage& lineage) {
  Json jobs = Json::array();
  for (const Part& part : lineage.parts) {
    Json selector = Json::object({{"pool", chance_.percent(50) ? "a" : "b"}});
    Json spec = Json::object({{"nodeSelector", std::move(selector)}});
    Json pod = Json::object({{"spec", std::move(spec)}});
    if (chance_.percent(50)) {
      Json labels = Json::object({{"kueue.x-k8s.io/podset", part.name}});
      pod.set("metadata", Json::object({{"labels", std::move(labels)}}));
    }
    Json job_spec = Json::object({{"template", std::move(pod)}});
    Json job = Json::object({{"name", part.name}});
    job.set("template", Json::object({{"spec", std::move(job_spec)}}));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void Users::set_suspended(const Lineage& lineage, bool is_suspended) {
  const auto& resource = resource_of(lineage);
  const Object object = store_.find(resource.plural, lineage.key);
  if (!object || object->find("spec")->get_bool("suspend") == is_suspended) return;
  trace_(fmt::format("{} {}", is_suspended ? "suspends" : "resumes", lineage.key.to_string()));
  Json spec = Json::object({{"suspend", is_suspended}});
  if (!is_suspended && lineage.is_trainjob && chance_.percent(70)) {
    spec.set("runtimePatches", patches(admission(lineage)));
  }
  store_.merge(Actor::kUser, resource, lineage.key, Json::object({{"spec", std::move(spec)}}), "");
}

// Once nothing runs any more.
void Users::take_back_admission(const Lineage& lineage) {
  const Object object = store_.find("trainjobs", lineage.key);
  if (!object || !object->find("spec")->get_bool("suspend")) return;
  if (const Json* status = object->find("status")) {
    for (const Json& job : status->get_array("jobsStatus")) {
      if (job.get_int("active") > 0) return;
    }
  }
  trace_("takes back the admission of " + lineage.key.to_string());
  const Json spec = Json::object({{"runtimePatches", patches({})}});
  store_.merge(Actor::kUser, kTrainJobs, lineage.key, Json::object({{"spec", spec}}), "");
}

// The rules of the CRD refuse another number while the status has no bounds.
void Users::scale(const Lineage& lineage, int nodes) {
  const Object object = store_.find("trainjobs", lineage.key);
  if (!object || !object->get("status").find("elastic")) return;
  trace_(fmt::format("scales {} to {}", lineage.key.to_string(), nodes));
  const Json spec = Json::object({{"trainer", Json::object({{"numNodes", nodes}})}});
  store_.merge(Actor::kUser, kTrainJobs, lineage.key, Json::object({{"spec", spec}}), "");
}

void Users::label(const Lineage& lineage) {
  Json labels = Json::object({{"touched", std::to_string(++counter_)}});
  const Json patch = Json::object({{"metadata", Json::object({{"labels", std::move(labels)}})}});
  store_.merge(Actor::kUser, resource_of(lineage), lineage.key, patch, "");
}

void Users::remove(std::string_view plural, const ObjectKey& key) {
  const auto& resource = *store_.find_kind(plural);
  const Object object = store_.find(plural, key);
  if (!object) return;
  const std::string_view how = chance_.percent(50) ? "Foreground" : "Background";
  trace_(fmt::format("deletes {} {} ({})", resource.kind, key.to_string(), how));
  store_.remove(Actor::kUser, resource, key, Json::object({{"propagationPolicy", how}}));
}

void Users::remove_any_child(const Lineage& lineage, std::string_view plural) {
  std::vector<ObjectKey> children;
  for (const auto& [key, held] : store_.all(plural)) {
    const Object object = held.get();
    const Json* labels = object->find_path({"metadata", "labels"});
    if (labels && labels->get_string("jobset.sigs.k8s.io/jobset-name") == lineage.key.name) {
      children.push_back(key);
    }
  }
  if (!children.empty()) remove(plural, chance_.pick(children));
}

}  // namespace trainer::simulation
