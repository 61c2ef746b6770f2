// This is the wire form and the schema of a TrainJob's status. Include it only where a visitor is
// instantiated.
#pragma once

#include "api/describe/attributes.hh"
#include "api/trainjob.hh"

namespace trainer {

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

}  // namespace trainer
