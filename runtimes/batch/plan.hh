// What should happen to one Job now. Pure; one file for each policy.
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

// Pods of a Job that have failed since its last success: uid, and when it ended. It decides how
// long the next pod waits; a new process begins without, as the controller of Kubernetes does.
using Backoff = std::vector<std::pair<std::string, kube::Time>>;

struct Observed {
  const Job* job = nullptr;  // nullptr: there is none of this name
  // Pods that name the Job, by PodView::job: its own, and those of an earlier Job of this name.
  std::vector<const PodView*> pods;
  Backoff backoff;                            // JobPlan::backoff of the last plan
  std::function<std::string()> new_suffix{};  // five characters that make a pod's name unique
  kube::Time now;
};

struct JobPlan : kube::Plan {
  Backoff backoff;
};

// The rules of Kubernetes 1.36 (pkg/controller/job), apart from these: `status.active` counts pods
// that exist, not those that are about to; a pod that waits for a machine while it is deleted
// counts as failed at once, since no kubelet ends it; and for a Job that is being deleted only its
// pods' finalizers are removed, while Kubernetes may still write how it ends. What Kubernetes does
// in one reconcile takes up to three plans here: a status that counts pods, then the finalizers of
// these pods, then the counters and the end. Pods of no Job are never adopted. An unchanged Job
// gets an empty plan.
JobPlan plan(const Observed& observed);

}  // namespace trainer::batch
