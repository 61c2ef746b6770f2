// What the API server is told about our webhooks: names, paths and rules (trainer-contract 6.1,
// jobset-contract 6.4). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// The paths under which requests are answered. Upstream has no mutating webhook for runtimes: ours
// converts fields of v2.0 and v2.1.
inline constexpr std::string_view kMutateTrainJob =
    "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
inline constexpr std::string_view kMutateRuntime =
    "/mutate-trainer-kubeflow-org-v1alpha1-trainingruntime";
inline constexpr std::string_view kMutateClusterRuntime =
    "/mutate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";
inline constexpr std::string_view kValidateTrainJob =
    "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
inline constexpr std::string_view kValidateRuntime =
    "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime";
inline constexpr std::string_view kValidateClusterRuntime =
    "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";
inline constexpr std::string_view kMutateJobSet = "/mutate-jobset-x-k8s-io-v1alpha2-jobset";
inline constexpr std::string_view kValidateJobSet = "/validate-jobset-x-k8s-io-v1alpha2-jobset";
inline constexpr std::string_view kMutatePod = "/mutate--v1-pod";
inline constexpr std::string_view kValidatePod = "/validate--v1-pod";

// Names of our configuration objects. Those for JobSets are ours alone: upstream's JobSet
// controller has others, which are never touched.
inline constexpr std::string_view kDefaulterName = "defaulter.trainer.kubeflow.org";
inline constexpr std::string_view kValidatorName = "validator.trainer.kubeflow.org";
inline constexpr std::string_view kJobSetWebhooksName = "jobset.trainer.kubeflow.org";
// Exclusive placement: installed apart, for it concerns other people's pods.
inline constexpr std::string_view kPodWebhooksName = "pods.jobset.trainer.kubeflow.org";

struct WebhookConfiguration {
  kube::Resource resource;
  kube::Json object;
  kube::ObjectKey key() const {
    return {"", std::string(object.find_path({"metadata"})->get_string("name"))};
  }
};

// How the API server reaches us: by a URL, or by a Service.
struct WebhookTarget {
  std::string url;  // "https://HOST:PORT"; empty: the service
  kube::ObjectKey service;
  std::string ca_pem;  // empty: left out, to be filled in later
};

// All our configurations but those for pods. `username` is what the API server calls this
// controller: its own writes to JobSets (field manager "trainer") are let through, since the
// builder has filled the defaults and the rules have been applied.
std::vector<WebhookConfiguration> webhook_configurations(const WebhookTarget& target,
                                                         const std::string& username);

// Those of exclusive placement. Only what it must not miss fails when nobody answers: pods under
// the annotation. Other pods of JobSets get their priority label if we are there to give it, and
// pods of no JobSet are never sent.
std::vector<WebhookConfiguration> pod_webhook_configurations(const WebhookTarget& target);

// True for a configuration object of ours.
bool is_own_webhook_configuration(std::string_view name);

// RFC 6902 operations that give every webhook of this stored configuration our CA; an empty array
// when all have it. Each is guarded by the webhook's name, because the list may change in between.
kube::Json ca_bundle_patch(const kube::Json& configuration, const std::string& ca_pem);

}  // namespace trainer
