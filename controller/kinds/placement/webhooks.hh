// The admission of Pods under exclusive placement is made here.
#pragma once

#include <memory>
#include <string_view>

#include "controller/admission/webhook.hh"
#include "controller/kinds/jobset/jobset_state.hh"

namespace trainer {

// Both configurations have this name. They are installed separately, since they also concern Pods
// of other JobSets: `is_published` says whether this process publishes them.
inline constexpr std::string_view kPodWebhooks = "pods.jobset.trainer.kubeflow.org";

// If no process answers, only Pods with the annotation are refused. Other Pods of JobSets get their
// priority label if a process answers. Pods without a JobSet are never sent to the webhooks.
AdmissionRegistration placement_admission(std::shared_ptr<const JobSetState> shared,
                                          bool is_published);

}  // namespace trainer
