#include "tests/simulation/oracle.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/simulation/job_status.hh"

namespace trainer::simulation {
namespace {

using kube::Json;
using kube::ObjectMeta;

std::int64_t restarts_of(const Json& object) {
  const Json* status = object.find("status");
  return status ? status->get_int("restarts") : 0;
}

bool is_spec_equal(const Json& a, const Json& b) {
  return a.find("spec") && b.find("spec") && *a.find("spec") == *b.find("spec");
}

std::string label(const Json& object, std::string_view key) {
  const Json* labels = object.find_path({"metadata", "labels"});
  return labels ? std::string(labels->get_string(key)) : std::string();
}

bool is_one_pod(const Json& a, const Json& b) {
  for (const auto key :
       {"jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name",
        "jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"}) {
    if (label(a, key) != label(b, key)) return false;
  }
  return true;
}

std::string describe(const Change& change) {
  const std::string_view what = !change.before ? "create" : change.after ? "change" : "delete";
  return fmt::format("{} {} {}", what, change.resource.kind, change.key.to_string());
}

}  // namespace

bool is_condition_true(const Json& object, std::string_view type) {
  return is_job_condition_true(object, type);
}

bool has_ended(const Json& object) {
  return is_condition_true(object, "Completed") || is_condition_true(object, "Complete") ||
         is_condition_true(object, "Failed");
}

int attempt_of(const Json& object) {
  return std::atoi(label(object, "jobset.sigs.k8s.io/restart-attempt").c_str());
}

Oracle::Oracle(ApiStore& store) : store_(store) {
  store_.subscribe([this](const Change& change) { on_change(change); });
}

void Oracle::report(std::string what) {
  if (!violation_) violation_ = std::move(what);
}

Object Oracle::owner_of(const Json& object) const {
  const auto meta = ObjectMeta::of(object);
  const auto* owner = meta.controller();
  if (!owner) return nullptr;
  const auto plural = owner->kind == "TrainJob" ? "trainjobs"
                      : owner->kind == "JobSet" ? "jobsets"
                                                : "jobs";
  const Object found = store_.find(plural, {meta.ns, owner->name});
  return found && ObjectMeta::of(*found).uid == owner->uid ? found : nullptr;
}

void Oracle::on_change(const Change& change) {
  const std::string& kind = change.resource.kind;
  const auto uid = ObjectMeta::of(change.after ? *change.after : *change.before).uid;
  if (kind == "TrainJob" || kind == "JobSet") {
    if (!change.before && foreign_.count(uid) == 0) roots_.insert(uid);
    check_restarts(change);
    check_end(change);
  }
  if (kind == "Job") note_job(change);
  if (kind == "Pod" && !change.before) check_overlap(change);
  if (change.actor != Actor::kController) return;
  ++writes_;
  last_write_ = describe(change);
  if (kind == "Event") return;
  check_ownership(change);
  if (!change.before) check_creation(change);
  const bool is_deletion = !change.after || (change.before && is_deleting(*change.after) &&
                                             !is_deleting(*change.before));
  if (kind == "Job" && is_deletion) check_job_deletion(change);
}

void Oracle::check_ownership(const Change& change) {
  if (!change.before) return;
  const auto meta = ObjectMeta::of(*change.before);
  const auto* owner = meta.controller();
  const bool is_root = !owner && roots_.count(meta.uid) > 0;
  const bool is_child = owner && roots_.count(owner->uid) > 0;
  if (foreign_.count(meta.uid) > 0 || !(is_root || is_child)) {
    report(describe(change) + ": the object is not the controller's");
  }
  if (is_root && change.after && !is_spec_equal(*change.before, *change.after)) {
    report(describe(change) + ": the spec is its user's");
  }
}

// A restart is counted once, for a Job of the attempt that it ends.
void Oracle::check_restarts(const Change& change) {
  if (change.resource.kind != "JobSet" || !change.before || !change.after) return;
  const auto before = restarts_of(*change.before);
  const auto after = restarts_of(*change.after);
  if (before == after) return;
  const auto uid = ObjectMeta::of(*change.after).uid;
  if (after != before + 1) {
    report(fmt::format("{}: restarts went from {} to {}", describe(change), before, after));
  } else if (failed_attempts_[uid].count(static_cast<int>(before)) == 0) {
    report(fmt::format("{}: restart {} was counted, but no Job of attempt {} has failed",
                       describe(change), after, before));
  }
}

void Oracle::check_end(const Change& change) {
  if (!change.before || !change.after) return;
  for (const auto type : {"Completed", "Complete", "Failed"}) {
    if (is_condition_true(*change.before, type) && !is_condition_true(*change.after, type)) {
      report(fmt::format("{}: {} is no longer True", describe(change), type));
    }
  }
  if (is_condition_true(*change.after, "Failed") &&
      (is_condition_true(*change.after, "Completed") ||
       is_condition_true(*change.after, "Complete"))) {
    report(describe(change) + ": it has ended in two ways");
  }
}

void Oracle::check_creation(const Change& change) {
  const std::string& kind = change.resource.kind;
  const Object owner = owner_of(*change.after);
  // The snapshot may be written again after the end, since it is no child that runs.
  if (owner && has_ended(*owner) && kind != "ConfigMap") {
    report(describe(change) + ": its owner has ended");
  }
  if (kind != "Job" || !owner) return;
  const Json* strategy = owner->find_path({"spec", "failurePolicy", "restartStrategy"});
  if (!strategy || *strategy != Json("BlockingRecreate")) return;
  const auto uid = ObjectMeta::of(*owner).uid;
  for (const auto& [key, held] : store_.all("jobs")) {
    const Object job = held.get();
    const auto meta = ObjectMeta::of(*job);
    const auto* other = meta.controller();
    if (other && other->uid == uid && attempt_of(*job) < attempt_of(*change.after)) {
      report(
          fmt::format("{}: Job {} of an earlier attempt is still there, in spite of "
                      "BlockingRecreate",
                      describe(change), key.to_string()));
    }
  }
}

// The controller deletes Jobs if their attempt or their JobSet is over, and in the foreground.
void Oracle::check_job_deletion(const Change& change) {
  const Object owner = owner_of(*change.before);
  if (owner && !has_ended(*owner) && !is_deleting(*owner) &&
      attempt_of(*change.before) >= restarts_of(*owner)) {
    report(describe(change) + ": its attempt is not over");
  }
  if (!change.after) report(describe(change) + ": without awaiting its pods");
  const Json* annotations = owner ? owner->find_path({"metadata", "annotations"}) : nullptr;
  const auto kept = annotations ? annotations->get_string("trainer.kubeflow.org/kept-on-restart")
                                : std::string_view();
  const std::string name = label(*change.before, "jobset.sigs.k8s.io/replicatedjob-name");
  if (owner && !has_ended(*owner) && !is_deleting(*owner) && kept.find(name) != kept.npos &&
      is_job_condition_true(*change.before, "Complete")) {
    report(describe(change) + ": it is complete, and kept over restarts");
  }
}

void Oracle::note_job(const Change& change) {
  const Json& job = change.after ? *change.after : *change.before;
  const auto meta = ObjectMeta::of(job);
  // A user's deletion in the background also ends one in the foreground that waits for the pods.
  if (!change.after && (!is_deleting(*change.before) || change.actor == Actor::kUser)) {
    abandoned_.insert(meta.uid);
  }
  const auto* owner = meta.controller();
  if (!owner || !change.after) return;
  if (is_job_condition_true(job, "FailureTarget") || is_job_condition_true(job, "Failed")) {
    failed_attempts_[owner->uid].insert(attempt_of(job));
  }
}

// Two attempts of one pod never run at a time, unless another client removed the first from its
// Job.
void Oracle::check_overlap(const Change& change) {
  const auto created = ObjectMeta::of(*change.after);
  const auto* owner = created.controller();
  const std::string job_uid = owner ? owner->uid : "";
  for (const auto& [key, held] : store_.all("pods")) {
    const Object pod = held.get();
    if (key == change.key || key.ns != change.key.ns || is_over(*pod)) continue;
    if (!is_one_pod(*pod, *change.after)) continue;
    const auto meta = ObjectMeta::of(*pod);
    const auto* other = meta.controller();
    if (!other || other->uid == job_uid || abandoned_.count(other->uid) > 0) continue;
    report(fmt::format("{}: pod {} of another Job is still running", describe(change),
                       key.to_string()));
  }
}

}  // namespace trainer::simulation
