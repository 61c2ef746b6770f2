// This is the wire form and the schema of run policies. Include it only where a visitor is
// instantiated.
#pragma once

#include "api/describe/attributes.hh"
#include "api/describe/jobset.hh"
#include "api/run_policy.hh"

namespace trainer {

template <class D>
void TrainJobFailurePolicy::describe(D& d) {
  d.field("maxRestarts", &TrainJobFailurePolicy::maxRestarts)
      .minimum(0)
      .doc("How many restarts there may be before the job fails.");
  d.field("maxDisruptionRestarts", &TrainJobFailurePolicy::maxDisruptionRestarts)
      .minimum(0)
      .doc("How many restarts there may be besides, after preemption, drain or loss of a machine.");
  d.field("processRestarts", &TrainJobFailurePolicy::processRestarts)
      .minimum(0)
      .doc("How often torchrun starts the processes again in their pods before a pod fails.");
  d.field("rules", &TrainJobFailurePolicy::rules)
      .doc("The first rule that matches a failed Job decides.");
}

template <class D>
void RunPolicy::describe(D& d) {
  d.field("activeDeadlineSeconds", &RunPolicy::activeDeadlineSeconds)
      .minimum(1)
      .doc("How long a job may take where it says nothing.");
  d.field("ttlSecondsAfterFinished", &RunPolicy::ttlSecondsAfterFinished)
      .minimum(0)
      .doc("A finished job that says nothing is deleted after this many seconds.");
  d.field("failurePolicy", &RunPolicy::failurePolicy)
      .doc("What a failed Job leads to where the job says nothing, over the template's.");
}

}  // namespace trainer
