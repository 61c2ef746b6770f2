// Training processes get a token, and the address to which they report progress (Kubeflow Trainer,
// pkg/runtime/framework/plugins/trainjobstatus).
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kube/model/resources.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/switches.hh"
#include "runtimes/stall/policy.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kVolume = "kubeflow-trainer-token";
constexpr std::string_view kDirectory = "/var/run/secrets/kubeflow/trainer";
constexpr int kTokenSeconds = 3600;  // the kubelet renews it in time

// The path is also the token's audience, so that a token serves one job's reports and nothing else.
std::string report_path(const TrainJob& job) {
  return fmt::format("{}/v1alpha1/namespaces/{}/trainjobs/{}/status", kTrainerGroup,
                     job.metadata.ns, job.metadata.name);
}

std::string ca_name(const TrainJob& job) {
  return job.metadata.name + "-tls-config";
}

kube::Json token_volume(const Draft& draft) {
  const kube::Json token = kube::Json::object(
      {{"serviceAccountToken", kube::Json::object({{"audience", report_path(draft.job)},
                                                   {"expirationSeconds", kTokenSeconds},
                                                   {"path", "token"}})}});
  const kube::Json ca = kube::Json::object(
      {{"configMap",
        // The object is optional: without it the reports fail, and not the training.
        kube::Json::object({{"name", ca_name(draft.job)},
                            {"optional", true},
                            {"items", kube::Json::array({kube::Json::object(
                                          {{"key", "ca.crt"}, {"path", "ca.crt"}})})}})}});
  return kube::Json::object(
      {{"name", kVolume},
       {"projected", kube::Json::object({{"sources", kube::Json::array({token, ca})}})}});
}

bool reports(const Draft& draft) {
  const PipelineOptions& options = draft.options;
  // Heartbeats are sent with the token of progress reports.
  return options.is_progress_enabled &&
         is_switched_on(
             draft, kReportProgressKey,
             !options.is_progress_opt_in || is_switched_on(draft, stall::kDetectHangsKey, false));
}

// Pods that were built without reports do not have the volume.
bool reports(const kube::Json& jobset) {
  const auto has_volume = [](const kube::Json& job) {
    const kube::Json* pod = job.find_path({"template", "spec", "template", "spec"});
    if (!pod) return false;
    const auto& volumes = pod->get_array("volumes");
    return std::any_of(volumes.begin(), volumes.end(), [](const kube::Json& volume) {
      return volume.get_string("name") == kVolume;
    });
  };
  const kube::Json* spec = jobset.find("spec");
  if (!spec) return false;
  const auto& jobs = spec->get_array("replicatedJobs");
  return std::any_of(jobs.begin(), jobs.end(), has_volume);
}

// Makes the certificate by which pods trust the status server.
DependentObject make_ca(const TrainJob& job, const PipelineOptions& options) {
  DependentObject ca;
  ca.is_needed = false;
  ca.resource = kube::kConfigMaps;
  ca.object = kube::Json::object(
      {{"apiVersion", kube::kConfigMaps.api_version()},
       {"kind", kube::kConfigMaps.kind},
       {"metadata", kube::Json::object({{"name", ca_name(job)}, {"namespace", job.metadata.ns}})},
       {"data", kube::Json::object({{"ca.crt", options.status_server_ca}})}});
  return ca;
}

class Progress final : public Plugin {
 public:
  std::string_view source() const override { return "plugin progress"; }
  bool is_active(const Draft& draft) const override;
  void enforce_pod_spec(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void refresh_dependents(const TrainJob& job, const kube::Json& jobset,
                          const PipelineOptions& options,
                          std::vector<DependentObject>& dependents) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override {
    check_switch(draft, kReportProgressKey, errors);
  }
};

}  // namespace

bool Progress::is_active(const Draft& draft) const {
  return draft.find_ancestor(kTrainerStep) &&
         (draft.options.is_progress_enabled || find_setting(draft, kReportProgressKey));
}

void Progress::enforce_pod_spec(Draft& draft) const {
  if (!reports(draft)) return;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    if (draft.pod_sets[i].ancestor != kTrainerStep) continue;
    draft.upsert_volume(i, token_volume(draft), source());
    // Containers are not looked up by name: one search for each of very many containers takes long.
    kube::Json* const containers = draft.pod_template(i)["spec"].find("containers");
    if (!containers || !containers->is_array()) continue;
    for (kube::Json& each : containers->as_array()) {
      ContainerEdit container = draft.edit(i, each, source());
      container.env(
          "KUBEFLOW_TRAINER_SERVER_URL",
          fmt::format("{}/apis/{}", draft.options.status_server_url, report_path(draft.job)));
      container.env("KUBEFLOW_TRAINER_SERVER_CA_CERT", fmt::format("{}/ca.crt", kDirectory));
      container.env("KUBEFLOW_TRAINER_SERVER_TOKEN", fmt::format("{}/token", kDirectory));
      container.mount(
          kube::Json::object({{"name", kVolume}, {"mountPath", kDirectory}, {"readOnly", true}}));
    }
  }
}

void Progress::add_dependents(Draft& draft) const {
  if (reports(draft)) draft.dependents.push_back(make_ca(draft.job, draft.options));
}

void Progress::refresh_dependents(const TrainJob& job, const kube::Json& jobset,
                                  const PipelineOptions& options,
                                  std::vector<DependentObject>& dependents) const {
  if (options.is_progress_enabled && reports(jobset)) dependents.push_back(make_ca(job, options));
}

std::unique_ptr<const Plugin> make_progress() {
  return std::make_unique<Progress>();
}

}  // namespace trainer::pipeline
