// This is the wire form and the schema of TrainJob. Include it only where a visitor is
// instantiated.
#pragma once

#include "api/describe/attributes.hh"
#include "api/describe/elastic_rules.hh"
#include "api/describe/run_policy.hh"
#include "api/describe/runtime_patch.hh"
#include "api/trainjob.hh"

namespace trainer {

template <class D>
void RuntimeRef::describe(D& d) {
  d.required("name", &RuntimeRef::name).min_length(1).max_length(253).doc("The runtime's name.");
  d.field("apiGroup", &RuntimeRef::apiGroup)
      .max_length(253)
      .defaults_to("trainer.kubeflow.org")
      .doc("The runtime's API group.");
  d.field("kind", &RuntimeRef::kind)
      .max_length(253)
      .defaults_to("ClusterTrainingRuntime")
      .doc("ClusterTrainingRuntime, or TrainingRuntime for one in the TrainJob's namespace.");
}

template <class D>
void InitializerSource::describe(D& d) {
  d.field("storageUri", &InitializerSource::storageUri)
      .max_length(2048)
      .rule({"self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
             "storageUri may be empty, or it must be a valid URI (scheme://...)",
             [](const kube::Json& self) {
               return self.as_string().empty() || wire::is_uri(self.as_string());
             }})
      .doc("Where to load from, such as hf://ORGANISATION/NAME or s3://BUCKET/PATH.");
  d.field("env", &InitializerSource::env)
      .kubernetes("EnvVar")
      .list_map("name")
      .max_items(128)
      .doc("Environment of the initializer's container.");
  d.field("secretRef", &InitializerSource::secretRef)
      .kubernetes("LocalObjectReference")
      .doc("A Secret whose keys become environment variables of the initializer.");
}

template <class D>
void Initializer::describe(D& d) {
  d.field("dataset", &Initializer::dataset).doc("What is loaded into /workspace/dataset.");
  d.field("model", &Initializer::model).doc("What is loaded into /workspace/model.");
}

template <class D>
void Trainer::describe(D& d) {
  d.field("image", &Trainer::image).max_length(500).doc("Image of the container node.");
  d.field("command", &Trainer::command)
      .list_atomic()
      .max_items(128)
      .item_max_length(1048576)
      .doc("Entrypoint of the container node.");
  d.field("args", &Trainer::args)
      .list_atomic()
      .max_items(128)
      .item_max_length(1048576)
      .doc("Arguments of the container node.");
  d.field("env", &Trainer::env)
      .kubernetes("EnvVar")
      .list_map("name")
      .max_items(128)
      .doc("Environment of the container node; takes precedence over the runtime's.");
  d.field("numNodes", &Trainer::numNodes).minimum(0).doc("How many training nodes there are.");
  d.field("resourcesPerNode", &Trainer::resourcesPerNode)
      .kubernetes("ResourceRequirements")
      .doc("Resources of the container node.");
  d.field("numProcPerNode", &Trainer::numProcPerNode)
      .rule(wire::at_least_one("numProcPerNode must be greater than or equal to 1"))
      .doc("How many processes each node runs; by default as many as its resources suggest.");
}

template <class D>
void RuntimePatch::describe(D& d) {
  d.required("manager", &RuntimePatch::manager)
      .min_length(1)
      .max_length(253)
      .immutable("field is immutable")
      .doc("Who wrote the patch, as a domain-prefixed path such as kueue.x-k8s.io/manager.");
  d.field("time", &RuntimePatch::time).doc("When the patch was last changed; kept by admission.");
  d.field("trainingRuntimeSpec", &RuntimePatch::trainingRuntimeSpec)
      .template shape<RuntimeSpecPatch>()
      .doc("Merged into the runtime's spec.");
}

template <class D>
void TrainJobSpec::describe(D& d) {
  // A field's own rule does not run when the field is added or removed.
  d.self().rule({"has(self.failurePolicy) == has(oldSelf.failurePolicy)",
                 "failurePolicy is immutable, and can be neither added nor removed"});
  d.required("runtimeRef", &TrainJobSpec::runtimeRef)
      .immutable("field is immutable")
      .doc("The blueprint this job is made from.");
  d.field("initializer", &TrainJobSpec::initializer)
      .immutable("field is immutable")
      .doc("What is loaded before training starts.");
  d.field("trainer", &TrainJobSpec::trainer).doc("What is trained, and on how many nodes.");
  d.field("runtimePatches", &TrainJobSpec::runtimePatches)
      .list_map("manager")
      .max_items(16)
      .doc("Changes to the runtime, for this job only, in the order in which they are merged.");
  d.field("suspend", &TrainJobSpec::suspend)
      .defaults_to(false)
      .doc("Whether the job is held back, for example by a queue.");
  d.field("activeDeadlineSeconds", &TrainJobSpec::activeDeadlineSeconds)
      .minimum(1)
      .immutable("field is immutable")
      .doc("How long the job may take, from its creation or its last resumption, before it fails.");
  d.field("managedBy", &TrainJobSpec::managedBy)
      .max_length(253)
      .defaults_to("trainer.kubeflow.org/trainjob-controller")
      .rule({"self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']",
             "ManagedBy must be trainer.kubeflow.org/trainjob-controller or "
             "kueue.x-k8s.io/multikueue "
             "if set",
             [](const kube::Json& self) {
               return self.as_string() == kTrainJobController ||
                      self.as_string() == kMultiKueueController;
             }})
      .immutable("field is immutable")
      .doc("The controller that runs this job.");
  d.field("ttlSecondsAfterFinished", &TrainJobSpec::ttlSecondsAfterFinished)
      .minimum(0)
      .doc("The finished job is deleted after this many seconds. An extension.");
  d.field("failurePolicy", &TrainJobSpec::failurePolicy)
      .immutable("field is immutable")
      .doc("What a failed Job leads to, over what the runtime says. An extension.");
  d.removed(
      "podTemplateOverrides", wire::Removed::kObjects,
      "was removed in v2.2: write the same into runtimePatches[].trainingRuntimeSpec.template.spec."
      "replicatedJobs[].template.spec.template");
  d.removed(
      "podSpecOverrides", wire::Removed::kObjects,
      "was removed in v2.1: write the same into runtimePatches[].trainingRuntimeSpec.template.spec."
      "replicatedJobs[].template.spec.template.spec");
  d.removed(
      "labels", wire::Removed::kStrings,
      "was removed in v2.2: write runtimePatches[].trainingRuntimeSpec.template.metadata.labels");
  d.removed("annotations", wire::Removed::kStrings,
            "was removed in v2.2: write "
            "runtimePatches[].trainingRuntimeSpec.template.metadata.annotations");
}

template <class D>
void JobStatus::describe(D& d) {
  d.required("name", &JobStatus::name).min_length(1).max_length(253).doc("The replicated job.");
  d.required("ready", &JobStatus::ready)
      .minimum(0)
      .doc("Jobs whose pods are all ready or succeeded.");
  d.required("succeeded", &JobStatus::succeeded).minimum(0).doc("Jobs that are complete.");
  d.required("failed", &JobStatus::failed).minimum(0).doc("Jobs that failed.");
  d.required("active", &JobStatus::active)
      .minimum(0)
      .doc("Jobs that have pods running or pending.");
  d.required("suspended", &JobStatus::suspended).minimum(0).doc("Jobs that are held back.");
}

template <class D>
void Metric::describe(D& d) {
  d.required("name", &Metric::name).min_length(1).max_length(64).doc("What is measured.");
  d.required("value", &Metric::value).min_length(1).max_length(64).doc("The value, as text.");
}

template <class D>
void TrainerStatus::describe(D& d) {
  d.self().rule({"has(self.lastUpdatedTime)",
                 "lastUpdatedTime is required when trainerStatus is present",
                 [](const kube::Json& self) { return self.find("lastUpdatedTime") != nullptr; }});
  d.field("progressPercentage", &TrainerStatus::progressPercentage)
      .minimum(0)
      .maximum(100)
      .doc("How much of the training is done.");
  d.field("estimatedRemainingSeconds", &TrainerStatus::estimatedRemainingSeconds)
      .minimum(0)
      .doc("How long the rest is expected to take.");
  d.field("metrics", &TrainerStatus::metrics)
      .list_atomic()
      .max_items(256)
      .doc("The latest values that the training code reported.");
  d.field("lastUpdatedTime", &TrainerStatus::lastUpdatedTime).doc("When the report came.");
}

template <class D>
void NodesStatus::describe(D& d) {
  d.required("total", &NodesStatus::total).minimum(0).doc("How many training nodes there are.");
  d.required("ready", &NodesStatus::ready).minimum(0).doc("How many of them run.");
  d.derived("summary", &NodesStatus::summary).max_length(32).doc("Both, as ready/total.");
}

template <class D>
void FirstFailure::describe(D& d) {
  d.field("pod", &FirstFailure::pod).max_length(253).doc("The pod's name.");
  d.field("job", &FirstFailure::job).max_length(253).doc("The replicated job.");
  d.field("index", &FirstFailure::index).minimum(0).doc("The training node's index.");
  d.field("node", &FirstFailure::node).max_length(253).doc("The machine it ran on.");
  d.field("container", &FirstFailure::container).max_length(253).doc("The container that failed.");
  d.field("exitCode", &FirstFailure::exitCode).doc("Its exit code.");
  d.field("signal", &FirstFailure::signal).doc("The signal that ended it.");
  d.field("reason", &FirstFailure::reason)
      .max_length(1024)
      .doc("Why, in one word: Error, OOMKilled, Evicted and so on.");
  d.field("message", &FirstFailure::message)
      .max_length(4096)
      .doc("Its termination message, or the last lines it wrote.");
  d.field("attempt", &FirstFailure::attempt).minimum(0).doc("How many restarts there had been.");
  d.field("time", &FirstFailure::time).doc("When it ended.");
}

template <class D>
void StallSuspect::describe(D& d) {
  d.required("rank", &StallSuspect::rank).minimum(0).doc("RANK of the process.");
  d.field("pod", &StallSuspect::pod).max_length(253).doc("Its pod.");
  d.field("node", &StallSuspect::node).max_length(253).doc("The machine it runs on.");
  d.field("reason", &StallSuspect::reason)
      .max_length(64)
      .doc("Why it is named: Ended, Stopped, Silent, NeverReported, Behind, NotWaiting or Apart.");
  d.field("line", &StallSuspect::line)
      .max_length(512)
      .doc("The innermost line of the user's code that it is in.");
  d.field("where", &StallSuspect::where)
      .max_length(128)
      .doc("The thread or process that is in this line, if it is not the rank's main thread.");
}

template <class D>
void StallGroup::describe(D& d) {
  d.required("line", &StallGroup::line).max_length(512).doc("The line that these ranks are in.");
  d.required("count", &StallGroup::count).minimum(0).doc("How many they are.");
  d.field("ranks", &StallGroup::ranks).max_length(256).doc("Which, as 0-3, 7.");
}

template <class D>
void StallStatus::describe(D& d) {
  d.field("since", &StallStatus::since).doc("When a rank made its last step.");
  d.field("reason", &StallStatus::reason)
      .max_length(64)
      .doc("The rule that found the suspects; SamePlace or Undecided without a suspect.");
  d.field("message", &StallStatus::message).max_length(2048).doc("The same for people.");
  d.field("summary", &StallStatus::summary)
      .max_length(64)
      .doc("For how long, and the first suspect; the time is rounded down.");
  d.field("suspects", &StallStatus::suspects)
      .list_atomic()
      .max_items(kMaxStallSuspects)
      .doc("The ranks that the others wait for.");
  d.field("groups", &StallStatus::groups)
      .list_atomic()
      .max_items(kMaxStallGroups)
      .doc("Where the ranks stand, the largest group first.");
  d.field("world", &StallStatus::world).minimum(0).doc("How many ranks there are.");
}

template <class D>
void HangStatus::describe(D& d) {
  d.field("restarts", &HangStatus::restarts)
      .minimum(0)
      .doc("How often a hang was ended by a restart.");
  d.field("jobUid", &HangStatus::jobUid)
      .max_length(64)
      .doc("The uid of the Job that was ended at the last of these hangs.");
  d.field("step", &HangStatus::step).minimum(0).doc("The last step before it, in its attempt.");
  d.field("repeats", &HangStatus::repeats)
      .minimum(0)
      .doc("How many hangs in a row were at this step.");
}

template <class D>
void StragglerStatus::describe(D& d) {
  d.required("rank", &StragglerStatus::rank).minimum(0).doc("RANK of the process.");
  d.field("pod", &StragglerStatus::pod).max_length(253).doc("Its pod.");
  d.field("node", &StragglerStatus::node).max_length(253).doc("The machine it runs on.");
  d.field("times", &StragglerStatus::times)
      .max_length(16)
      .doc("Its own time of a step, in medians of all ranks, when it was named: 1.8.");
}

template <class D>
void GoodputStatus::describe(D& d) {
  d.field("productive", &GoodputStatus::productive)
      .minimum(0)
      .doc("Seconds in which ranks made steps that no earlier attempt had made.");
  d.field("queued", &GoodputStatus::queued)
      .minimum(0)
      .doc("Seconds in which the job waited for admission or for machines.");
  d.field("starting", &GoodputStatus::starting)
      .minimum(0)
      .doc("Seconds in which the job had machines and made no step yet.");
  d.field("recomputed", &GoodputStatus::recomputed)
      .minimum(0)
      .doc("Seconds in which ranks made steps that an earlier attempt had made.");
  d.field("stalled", &GoodputStatus::stalled)
      .minimum(0)
      .doc("Seconds in which no rank of a running job made a step.");
  d.field("current", &GoodputStatus::current)
      .max_length(16)
      .doc("The member that grows since the time in since; empty in a finished job.");
  d.field("since", &GoodputStatus::since).doc("Until when the seconds are counted.");
  d.field("step", &GoodputStatus::step)
      .minimum(0)
      .doc("The highest step of the attempts before this one.");
  d.field("checkpoint", &GoodputStatus::checkpoint)
      .minimum(0)
      .doc("The step of the last checkpoint of the attempts before this one.");
}

template <class D>
void ElasticStatus::describe(D& d) {
  d.required("minNodes", &ElasticStatus::minNodes)
      .minimum(1)
      .doc("spec.trainer.numNodes is at least this.");
  d.required("maxNodes", &ElasticStatus::maxNodes)
      .minimum(1)
      .doc("spec.trainer.numNodes is at most this.");
  d.field("selector", &ElasticStatus::selector)
      .max_length(512)
      .doc("A label selector of the nodes' pods.");
}

template <class D>
void TrainJobStatus::describe(D& d) {
  d.self().min_properties(1);
  d.field("conditions", &TrainJobStatus::conditions)
      .list_map("type")
      .max_items(8)
      .doc("Suspended, Complete and Failed. Empty on a job that runs and was never suspended.");
  d.field("jobsStatus", &TrainJobStatus::jobsStatus)
      .list_map("name")
      .max_items(kMaxJobsStatus)
      .doc("By replicated job, how many of its Jobs are in which state.");
  d.field("trainerStatus", &TrainJobStatus::trainerStatus)
      .doc("What the training code reports about itself.");
  d.field("phase", &TrainJobStatus::phase)
      .one_of({"Queued", "Initializing", "Pending", "Starting", "Running", "Restarting",
               "Suspended", "Complete", "Failed"})
      .doc("Where the job stands. An extension, as all that follows.");
  d.field("reason", &TrainJobStatus::reason).max_length(1024).doc("Why, in one word.");
  d.field("message", &TrainJobStatus::message).max_length(32768).doc("Why, for people.");
  d.field("nodes", &TrainJobStatus::nodes).doc("How many training nodes run.");
  d.field("elastic", &TrainJobStatus::elastic)
      .doc("Between which numbers of nodes the running job may be scaled; absent if it may not.");
  d.field("restarts", &TrainJobStatus::restarts)
      .minimum(0)
      .doc("How often all nodes were restarted together.");
  d.field("executionAttempts", &TrainJobStatus::executionAttempts)
      .minimum(0)
      .doc("TRAINER_ATTEMPT of the nodes that run, from 0: restarts and evictions raise it.");
  d.field("restartBudget", &TrainJobStatus::restartBudget)
      .max_length(64)
      .doc("Restarts of those that failurePolicy allows, as 1/3; behind a + those by disruptions.");
  d.field("firstFailure", &TrainJobStatus::firstFailure)
      .doc("The first pod that failed, kept after the pod is gone.");
  d.field("stall", &TrainJobStatus::stall)
      .doc("Which rank keeps the training from making steps, if none is made for long.");
  d.field("hangs", &TrainJobStatus::hangs).doc("The hangs that were ended by a restart.");
  d.field("stragglers", &TrainJobStatus::stragglers)
      .list_atomic()
      .max_items(kMaxStragglers)
      .doc("The ranks that are slower than the others, which wait for them at each step.");
  d.field("goodput", &TrainJobStatus::goodput)
      .doc("What the time of the job was used for, if its ranks report steps.");
  d.field("processRestarts", &TrainJobStatus::processRestarts)
      .minimum(0)
      .doc("How often processes were started again in their pods. Absent if no rank reports.");
  d.field("startTime", &TrainJobStatus::startTime).doc("When the first node ran.");
  d.field("completionTime", &TrainJobStatus::completionTime).doc("When the job ended.");
  d.field("activeDeadlineSeconds", &TrainJobStatus::activeDeadlineSeconds)
      .minimum(1)
      .doc("The deadline by the runtime's runPolicy, for a job without its own.");
  d.field("ttlSecondsAfterFinished", &TrainJobStatus::ttlSecondsAfterFinished)
      .minimum(0)
      .doc("The time to live by the runtime's runPolicy, for a job without its own.");
  d.field("runtimeSnapshotHash", &TrainJobStatus::runtimeSnapshotHash)
      .max_length(64)
      .doc("SHA-256 of the snapshot of the runtime.");
}

// Returns metadata.name, or "" if the API server has yet to generate it.
inline std::string_view name_of(const kube::Json& object) {
  const kube::Json* metadata = object.find("metadata");
  return metadata == nullptr ? std::string_view() : metadata->get_string("name");
}

template <class D>
void TrainJob::describe(D& d) {
  d.self()
      .doc("A training job: what is trained, on how many nodes, and the runtime it is made from.")
      .rule({"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
             "metadata.name must match RFC 1035 DNS label format",
             [](const kube::Json& self) {
               const std::string_view name = name_of(self);
               return name.empty() || wire::is_dns_label(name);
             }})
      .rule({"size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters",
             [](const kube::Json& self) { return name_of(self).size() <= 63; }})
      .rule({.cel = wire::trainer_rule(),
             .message = "field is immutable",
             .field_path = ".spec.trainer",
             .keeps = wire::keeps_trainer})
      .rule({.cel = "!oldSelf.?status.elastic.hasValue() || "
                    "self.?spec.trainer.numNodes == oldSelf.?spec.trainer.numNodes || "
                    "self.?spec.trainer.numNodes.hasValue() && "
                    "oldSelf.status.elastic.minNodes <= self.spec.trainer.numNodes && "
                    "self.spec.trainer.numNodes <= oldSelf.status.elastic.maxNodes",
             .message = "numNodes of an elastic job must stay between status.elastic.minNodes and "
                        "maxNodes",
             .field_path = ".spec.trainer",
             .keeps = wire::keeps_bounds})
      // The subresource scale would add it, and no webhook of the job sees that.
      .rule({.cel =
                 "!oldSelf.?status.startTime.hasValue() || oldSelf.?status.elastic.hasValue() || "
                 "self.?spec.trainer.hasValue() == oldSelf.?spec.trainer.hasValue()",
             .message = "once the job has run it can be neither added nor removed: create the "
                        "TrainJob again",
             .field_path = ".spec.trainer",
             .keeps = wire::keeps_part});
  d.field("metadata", &TrainJob::metadata);
  d.field("spec", &TrainJob::spec).doc("What shall be trained.");
  d.field("status", &TrainJob::status).doc("What is seen of it.");
}

}  // namespace trainer
