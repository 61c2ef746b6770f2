// Plans what should happen to one Job now. Pure; each policy has a file.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/plan.hh"
#include "kube/model/time.hh"
#include "runtimes/batch/job.hh"
#include "runtimes/views/batch_pod.hh"

namespace trainer::batch {

// These pods of a Job have failed since its last success: uid, and when it ended. They decide how
// long the next pod waits. A new process begins without them; the controller of Kubernetes does,
// too.
using Backoff = std::vector<std::pair<std::string, kube::Time>>;

struct Observed {
  const BatchJob* job = nullptr;  // nullptr: there is none of this name
  // These pods name the Job, by BatchPodView::job: its own, and those of an earlier Job of this
  // name.
  std::vector<const BatchPodView*> pods;
  Backoff backoff;                            // JobPlan::backoff of the last plan
  std::function<std::string()> new_suffix{};  // five characters that make a pod's name unique
  kube::Time now;
};

struct BatchJobPlan : kube::Plan {
  Backoff backoff;
};

// Plans by the rules of Kubernetes 1.36 (pkg/controller/job), except for these. `status.active`
// counts pods that exist, not those that are about to. A pod that waits for a machine while it is
// deleted counts as failed at once, since no kubelet ends it. If a Job is being deleted, only its
// pods' finalizers are removed, while Kubernetes may still write how it ends. Kubernetes does in
// one reconcile what takes up to three plans here: a status that counts pods, then the finalizers
// of these pods, then the counters and the end. Pods of no Job are never adopted. An unchanged Job
// gets an empty plan.
BatchJobPlan plan(const Observed& observed);

}  // namespace trainer::batch
