#include "runtimes/trainjob/children.hh"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "api/api.hh"
#include "kube/model/name_index.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/pipeline/exec_sizes.hh"
#include "runtimes/trainjob/dependents.hh"
#include "runtimes/trainjob/difference.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/nodes.hh"
#include "runtimes/trainjob/snapshot.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr int kJobSetStage = 2;  // after the dependent objects
// A job is planned again at this interval where no watch shows that the reason has passed.
constexpr std::chrono::seconds kSlowRetry{30};

Blocked refused(const kube::FieldErrors& errors) {
  return {reasons::kChildRefused, kube::to_string(errors)};
}

// Returns why the job could not be read as a TrainJob of v2.3. Without a webhook, v2.0 and v2.1
// fields arrive as they were written.
kube::FieldErrors legacy_errors(const TrainJobObserved& observed) {
  if (!has_legacy_fields(observed.job_object)) return {};
  Json object = observed.job_object;
  return convert_legacy_trainjob(object).errors;
}

class ChildrenPlanner {
 public:
  ChildrenPlanner(const TrainJobObserved& observed, const PipelineOptions& options,
                  TrainJobPlan& plan)
      : observed_(observed), options_(options), plan_(plan) {}

  ChildrenState run() {
    if (const auto taken = name_taken()) return blocked(*taken);
    const SnapshotState snapshot = inspect_snapshot(observed_);
    const bool is_complete = !needs_jobset_write() && !is_dependent_missing(observed_, options_);
    if (is_complete && !do_pods_start_again() && !is_blocked_by_objects(observed_.job.status)) {
      keep_snapshot(snapshot);
      refresh_dependents(observed_, options_, plan_);
      return state_;
    }
    switch (snapshot.kind) {
      case SnapshotState::Kind::kUnread:
        plan_.needs_objects.push_back(snapshot_object(observed_.job));
        return state_;
      case SnapshotState::Kind::kNeedsRuntime:
        plan_.needs_objects.push_back(runtime_object(observed_.job));
        return state_;
      case SnapshotState::Kind::kRefused:
        if (is_complete) return state_;
        return blocked({*snapshot.reason, snapshot.message});
      case SnapshotState::Kind::kUsable:
        break;
    }
    note_snapshot(snapshot);
    build_from(snapshot);
    return state_;
  }

 private:
  void block(Blocked why) {
    if (why.reason.recheck != Reason::Recheck::kByWatch) plan_.requeue_within(kSlowRetry);
    state_.blocked = std::move(why);
  }
  ChildrenState blocked(Blocked why) {
    block(std::move(why));
    return std::move(state_);
  }

  // A JobSet that has the job's name and another owner is never changed, and no status is read from
  // it.
  std::optional<Blocked> name_taken() {
    if (!observed_.jobset || is_owned_by(observed_.jobset->metadata, observed_.job))
      return std::nullopt;
    const kube::OwnerReference* owner = observed_.jobset->metadata.controller();
    const std::string whose =
        owner ? fmt::format("is controlled by {} \"{}\"", owner->kind, owner->name)
              : "has no controller";
    return Blocked{
        reasons::kJobSetNameTaken,
        fmt::format(
            "JobSet \"{}\" exists and {}: delete it or create the TrainJob under another name",
            observed_.jobset->metadata.key().to_string(), whose)};
  }

  bool needs_jobset_write() const {
    const JobSet* jobset = observed_.jobset;
    if (!jobset) return true;
    // A JobSet that is being deleted cannot be repaired. The watch shows when it is gone, and then
    // it is made again.
    if (jobset->metadata.deletion_timestamp) return false;
    return observed_.job.is_suspended() || jobset->spec.suspend.value_or(false);
  }

  // Pods that run keep the volumes that they have mounted. A dependent object that was deleted
  // meanwhile is looked for when other pods will need it: after a restart is counted, and when the
  // kubelet cannot mount a volume.
  bool do_pods_start_again() const {
    const JobSet* jobset = observed_.jobset;
    return jobset && !jobset->metadata.deletion_timestamp &&
           (jobset->status.restarts > observed_.job.status.restarts ||
            observed_.waiting_event.starts_with(kMissingMount));
  }

  // Nothing is built now, so nothing is refused now either: a running job does not need a runtime
  // that is gone. But a snapshot that was deleted is written again while its runtime is unchanged.
  void keep_snapshot(const SnapshotState& snapshot) {
    switch (snapshot.kind) {
      case SnapshotState::Kind::kUnread:
        plan_.needs_objects.push_back(snapshot_object(observed_.job));
        break;
      case SnapshotState::Kind::kNeedsRuntime:
        plan_.needs_objects.push_back(runtime_object(observed_.job));
        break;
      case SnapshotState::Kind::kUsable:
        note_snapshot(snapshot);
        count_unreported_nodes(snapshot);
        break;
      case SnapshotState::Kind::kRefused:
        break;
    }
  }

  // Another controller has built the JobSet. It does not show whether an MPI launcher is a node,
  // but the runtime does.
  void count_unreported_nodes(const SnapshotState& snapshot) {
    const TrainJob& stored = observed_.job;
    if (stored.status.nodes || observed_.total_nodes > 0) return;
    const auto found = runtime_in(*snapshot.content, stored.spec.runtimeRef, stored.metadata.ns);
    if (!found || !(*found)->spec.mlPolicy || !(*found)->spec.mlPolicy->mpi) return;
    if (!legacy_errors(observed_).empty()) return;
    const auto built = build(stored, **found, options_, nullptr, observed_.jobset_object);
    if (built) state_.total_nodes = count_nodes(built->pod_sets, **found);
  }

  // The status does not report the hash of a snapshot that is yet to be written. If the write
  // failed, the job would be bound to a text that was never stored.
  void note_snapshot(const SnapshotState& snapshot) {
    if (snapshot.create) {
      plan_.actions.push_back(*snapshot.create);
      // The snapshot was deleted before the job had begun, and its text is another one now.
      const std::string& recorded = observed_.job.status.runtimeSnapshotHash;
      state_.is_other_snapshot = !recorded.empty() && recorded != snapshot.content->hash;
    } else {
      state_.snapshot_hash = snapshot.content->hash;
    }
  }

  void build_from(const SnapshotState& snapshot) {
    if (const auto errors = legacy_errors(observed_); !errors.empty()) {
      block(refused(errors));
      return;
    }
    const TrainJob& job = observed_.job;
    const auto found = runtime_in(*snapshot.content, job.spec.runtimeRef, job.metadata.ns);
    if (!found) {
      plan_.actions.clear();
      state_.snapshot_hash.clear();
      const bool is_cluster = is_cluster_scoped(job.spec.runtimeRef);
      block({reasons::kRuntimeSnapshotInvalid,
             fmt::format("{}: {}",
                         is_cluster ? "getting runtime snapshot" : "unable to get runtime snapshot",
                         found.error().message)});
      return;
    }
    const Runtime& runtime = **found;
    // The webhook's rules also hold without a webhook. A JobSet that exists was admitted before.
    if (!observed_.jobset) {
      if (const auto errors = validate_trainjob(job, nullptr, runtime, options_); !errors.empty()) {
        block(refused(errors));
        return;
      }
    }
    const auto built = build(job, runtime, options_, nullptr, observed_.jobset_object);
    if (!built) {
      block(refused(built.error()));
      return;
    }
    if (const auto errors = new_jobset_errors(*built, runtime); !errors.empty()) {
      block(refused(errors));
      return;
    }
    state_.total_nodes = count_nodes(built->pod_sets, runtime);
    for (const DependentObject& dependent : built->dependents) {
      if (auto why = plan_dependent(observed_, dependent, plan_)) block(std::move(*why));
    }
    if (!plan_.needs_objects.empty()) return;
    if (!needs_jobset_write() || state_.blocked) return;
    if (const auto changed = job_of_changed_affinity(built->jobset)) {
      block({reasons::kChildRefused,
             fmt::format(
                 "spec.runtimePatches: the affinity of job {} cannot change once its pods "
                 "have been started, as the API keeps that of a Job: take the change back, or "
                 "create the TrainJob anew",
                 *changed)});
      return;
    }
    if (add_jobset(built->jobset) && !job.is_suspended() && !built->ignored.empty())
      state_.ignored = kube::to_string(built->ignored);
  }

  // If the affinity were written into the JobSet, it would stay there and no pod would have it.
  std::optional<std::string> job_of_changed_affinity(const Json& built) const {
    if (!observed_.jobset_object || !observed_.have_jobs_started()) return std::nullopt;
    const auto jobs_of = [](const Json& jobset) -> const Json::Array& {
      return jobset.find("spec")->get_array("replicatedJobs");
    };
    const auto affinity_of = [](const Json& job) {
      const Json* found = job.find_path({"template", "spec", "template", "spec", "affinity"});
      return found && !found->empty() ? *found : Json();
    };
    const kube::NameIndex desired(jobs_of(built));
    for (const Json& stored : jobs_of(*observed_.jobset_object)) {
      const auto at = desired.find(stored.get_string("name"));
      if (at && affinity_of(jobs_of(built)[*at]) != affinity_of(stored))
        return std::string(stored.get_string("name"));
    }
    return std::nullopt;
  }

  // A JobSet that exists keeps its contents, so only a new one is checked.
  kube::FieldErrors new_jobset_errors(const Built& built, const Runtime& runtime) const {
    if (observed_.jobset) return {};
    kube::FieldErrors errors = pipeline::check_exec_sizes(built, observed_.job, runtime, options_);
    return errors.empty() ? jobset_errors(built.jobset) : errors;
  }

  // No webhook checks the JobSets that this controller writes, so the rules of their creation are
  // checked here. If another JobSet controller owns them, its webhook checks them.
  kube::FieldErrors jobset_errors(const Json& built) const {
    if (!observed_.is_jobset_controller_active) return {};
    const auto read = read_jobset(built);
    if (!read) return read.error();
    return jobset::validate_create(*read, observed_.gates,
                                   [](const std::string&, const std::string&) {
                                     return std::optional<Json>();  // the reconciler finds claims
                                   });
  }

  // Returns false if the stored JobSet is already equal.
  bool add_jobset(const Json& built) {
    kube::Action action;
    action.verb = kube::Action::Verb::kApply;
    action.resource = kJobSets;
    if (!observed_.jobset) action.owned_fields = kube::Action::OwnedFields::kConflict;
    action.key = observed_.job.metadata.key();
    action.owner_uid = observed_.job.metadata.uid;
    action.stage = kJobSetStage;
    action.body = with_owner(built, observed_.job);
    Json& spec = action.body["spec"];
    if (const JobSet* jobset = observed_.jobset) {
      // This field is fixed at creation: an apply without it would ask for a change that is
      // refused.
      if (jobset->spec.managedBy) spec.set("managedBy", *jobset->spec.managedBy);
      if (observed_.jobset_object && !is_jobset_changed(action.body, *observed_.jobset_object,
                                                        observed_.jobset_owned_fields)) {
        return false;
      }
      action.body["metadata"].set("uid", jobset->metadata.uid);
    } else if (!observed_.jobset_managed_by.empty() && !spec.find("managedBy")) {
      spec.set("managedBy", observed_.jobset_managed_by);
    }
    plan_.actions.push_back(std::move(action));
    return true;
  }

  const TrainJobObserved& observed_;
  const PipelineOptions& options_;
  TrainJobPlan& plan_;
  ChildrenState state_;
};

// The action sets `suspend` alone and leaves out the rest, which cannot be built or is refused.
// Otherwise a broken annotation or snapshot would keep machines that a queue has given to another
// job.
kube::Action suspend_only(const JobSet& jobset) {
  return {.verb = kube::Action::Verb::kMergePatch,
          .resource = kJobSets,
          .key = jobset.metadata.key(),
          .body = Json::object({{"metadata", Json::object({{"uid", jobset.metadata.uid}})},
                                {"spec", Json::object({{"suspend", true}})}})};
}

}  // namespace

Json owner_reference(const TrainJob& job) {
  kube::OwnerReference owner;
  owner.api_version = kTrainJobs.api_version();
  owner.kind = kTrainJobs.kind;
  owner.name = job.metadata.name;
  owner.uid = job.metadata.uid;
  owner.controller = true;
  owner.block_owner_deletion = true;
  return owner.to_json();
}

Json with_owner(Json object, const TrainJob& job) {
  object["metadata"].set("ownerReferences", Json::array({owner_reference(job)}));
  return object;
}

bool is_owned_by(const kube::ObjectMeta& child, const TrainJob& job) {
  const kube::OwnerReference* owner = child.controller();
  return owner && !owner->uid.empty() && owner->uid == job.metadata.uid;
}

ChildrenState plan_children(const TrainJobObserved& observed, const PipelineOptions& options,
                            TrainJobPlan& plan) {
  ChildrenState state = ChildrenPlanner(observed, options, plan).run();
  const JobSet* jobset = observed.jobset;
  if ((state.blocked || observed.refusal) && observed.job.is_suspended() && jobset &&
      is_owned_by(jobset->metadata, observed.job) && !jobset->metadata.deletion_timestamp &&
      !jobset->spec.suspend.value_or(false)) {
    plan.actions.push_back(suspend_only(*jobset));
  }
  return state;
}

}  // namespace trainer
