// Admission over TLS, as the API server calls it; a second, scripted API server answers its
// lookups.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "controller/process/serving.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/tests/scripted_server.hh"

namespace trainer::test {

// The webhooks' paths.
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

// An AdmissionReview "review-1" in namespace team-a: CREATE, or UPDATE of `old_object`.
std::string review_of(const kube::Json& object, const kube::Json& old_object = kube::Json());

kube::CertificateBundle certificates();

struct AdmissionFixture {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};
  AdmissionState state;
  std::mutex mutex;
  std::map<std::string, int> outcomes;
  std::unique_ptr<Serving> serving;
  kube::CertificateBundle bundle = certificates();
  std::unique_ptr<kube::Transport> transport;

  explicit AdmissionFixture(const KindOptions& options = KindOptions(),
                            ServingOptions serving_options = ServingOptions());
  // `config`: with the client's certificate, where it has one.
  void connect(const kube::CertificateBundle& trusted,
               kube::ClientConfig config = kube::ClientConfig());
  kube::Result<kube::HttpResponse> send(const std::string& method, std::string_view path,
                                        std::string body);
  // Sends a review and returns the `response` of the answer.
  kube::Json ask(std::string_view path, const std::string& body);
};

}  // namespace trainer::test
