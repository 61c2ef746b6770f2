// Training processes get the reporter: Python files that say what each rank does, so that a hang
// has a name (docs/reporter-protocol.md). Upstream has none.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/switches.hh"
#include "runtimes/stall/limits.hh"
#include "runtimes/stall/policy.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer {

// The build makes these from the Python files.
namespace reporter {
extern const std::string_view kSitecustomize;
extern const std::string_view kReporter;
extern const std::string_view kCounters;
extern const std::string_view kSignals;
extern const std::string_view kStacks;
extern const std::string_view kPost;
}  // namespace reporter

namespace pipeline {
namespace {

constexpr std::string_view kReporterVolume = "kubeflow-trainer-reporter";
constexpr std::string_view kReporterDirectory = "/var/run/kubeflow/trainer-reporter";
constexpr std::string_view kServer = "KUBEFLOW_TRAINER_SERVER_URL";  // plugin progress sets it
constexpr std::string_view kSwitch = "KUBEFLOW_TRAINER_REPORTER";

// The image's own PYTHONPATH stays behind it. A value in the pod would hide that of the image,
// which nothing here knows, so `sh` extends it.
std::string script() {
  return fmt::format(
      "PYTHONPATH={}${{PYTHONPATH:+:$PYTHONPATH}}; export PYTHONPATH; exec \"$0\" \"$@\"",
      kReporterDirectory);
}

std::string config_map_name(const TrainJob& job) {
  return job.metadata.name + "-reporter";
}

bool is_asked_for(const Draft& draft) {
  return draft.options.is_progress_enabled && is_switched_on(draft, stall::kDetectHangsKey, false);
}

std::optional<std::int32_t> threshold_of(std::string_view text) {
  const auto seconds = parse_unsigned(text);
  const bool is_usable =
      seconds && *seconds >= stall::kMinThreshold && *seconds <= stall::kMaxThreshold;
  return is_usable ? seconds : std::nullopt;
}

DependentObject make_files(const TrainJob& job) {
  DependentObject files;
  files.is_needed = false;
  files.resource = kube::kConfigMaps;
  files.object = kube::Json::object(
      {{"apiVersion", kube::kConfigMaps.api_version()},
       {"kind", kube::kConfigMaps.kind},
       {"metadata",
        kube::Json::object({{"name", config_map_name(job)}, {"namespace", job.metadata.ns}})},
       {"data", kube::Json::object({{"sitecustomize.py", reporter::kSitecustomize},
                                    {"trainer_reporter.py", reporter::kReporter},
                                    {"trainer_counters.py", reporter::kCounters},
                                    {"trainer_signals.py", reporter::kSignals},
                                    {"trainer_stacks.py", reporter::kStacks},
                                    {"trainer_post.py", reporter::kPost}})}});
  return files;
}

kube::Json volume_of(const TrainJob& job) {
  // The object is optional: without it nothing is reported, and the training goes on.
  return kube::Json::object(
      {{"name", kReporterVolume},
       {"configMap", kube::Json::object({{"name", config_map_name(job)}, {"optional", true}})}});
}

// A container without a command runs the image's entrypoint, which nothing can extend here.
bool can_report(const kube::Json& container) {
  return container.get_string("name") == kNode && !container.get_array("command").empty() &&
         kube::find_env(container, kServer) != nullptr;
}

void add_reporter(ContainerEdit& container) {
  kube::Json command = kube::Json::array({"sh", "-c", script()});
  for (const kube::Json& word : container.json().get_array("command")) command.push_back(word);
  container.set("command", std::move(command));
  container.env(kSwitch, "1");
  container.mount(kube::Json::object(
      {{"name", kReporterVolume}, {"mountPath", kReporterDirectory}, {"readOnly", true}}));
}

// The failure policies of the template, the runtime and the job are merged later, in this order.
bool allows_restarts(const Draft& draft) {
  std::int32_t allowed = 0;
  bool has_rules = false;
  const auto add = [&](const auto& policy) {
    if (!policy) return;
    allowed = policy->maxRestarts.value_or(allowed);
    has_rules = has_rules || !policy->rules.empty();
  };
  add(draft.spec.failurePolicy);
  if (const auto& defaults = draft.runtime.spec.runPolicy) add(defaults->failurePolicy);
  add(draft.job.spec.failurePolicy);
  return allowed > 0 || has_rules;
}

class Reporter final : public Plugin {
 public:
  std::string_view source() const override { return "plugin reporter"; }
  bool is_active(const Draft& draft) const override {
    return draft.find_ancestor(kTrainerStep) && find_setting(draft, stall::kDetectHangsKey);
  }
  void enforce_pod_spec(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  void warn_inactive(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

void Reporter::enforce_pod_spec(Draft& draft) const {
  if (!is_asked_for(draft)) return;
  const auto policy = find_setting(draft, kHangPolicyKey);
  if (policy && stall::parse_policy(policy->value))
    draft.set_annotation(kHangPolicyKey, std::string(policy->value), source());
  const auto threshold = find_setting(draft, kHangThresholdKey);
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    if (draft.pod_sets[i].ancestor != kTrainerStep) continue;
    const kube::Json* const found = draft.container(i, kNode);
    if (!found || !can_report(*found)) continue;
    draft.upsert_volume(i, volume_of(draft.job), source());
    if (threshold && threshold_of(threshold->value))
      draft.set_entry(i, "metadata", "annotations", kHangThresholdKey, threshold->value, source());
    if (auto container = draft.edit(i, kNode, source())) add_reporter(*container);
  }
}

void Reporter::add_dependents(Draft& draft) const {
  if (!is_asked_for(draft)) return;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    const kube::Json* const container = draft.container(i, kNode);
    if (container && kube::find_env(*container, kSwitch))
      return draft.dependents.push_back(make_files(draft.job));
  }
}

void Reporter::validate(const Draft& draft, kube::FieldErrors& errors) const {
  check_switch(draft, stall::kDetectHangsKey, errors);
  const auto threshold = find_setting(draft, kHangThresholdKey);
  if (threshold && !threshold_of(threshold->value))
    errors.push_back(kube::invalid(threshold->path, threshold->value,
                                   fmt::format("must be a whole number of seconds from {} to {}",
                                               stall::kMinThreshold, stall::kMaxThreshold)));
  const auto policy = find_setting(draft, kHangPolicyKey);
  if (policy && !stall::parse_policy(policy->value))
    errors.push_back(
        kube::not_supported(policy->path, std::string(policy->value), {"Fail", "Restart", "Warn"}));
}

void Reporter::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  if (!is_switched_on(draft, stall::kDetectHangsKey, false)) return;
  if (const auto policy = find_setting(draft, kHangPolicyKey);
      policy && policy->value == "Restart" && !allows_restarts(draft))
    warnings.push_back(
        fmt::format("{}: a hang ends the job, since its failure policy allows no restart: set "
                    "spec.failurePolicy.maxRestarts",
                    policy->path));
  const auto setting = find_setting(draft, stall::kDetectHangsKey);
  // A runtime asks for all its jobs, wherever it is installed.
  if (!setting->path.starts_with("metadata.")) return;
  if (!draft.options.is_progress_enabled) {
    warnings.push_back(
        fmt::format("{}: hangs are not detected, since this installation runs no status server: "
                    "statusServer.enabled in its configuration starts it",
                    setting->path));
  } else if (!is_switched_on(draft, kReportProgressKey, true)) {
    warnings.push_back(fmt::format("{}: hangs are not detected, since {} is \"false\"",
                                   setting->path, find_setting(draft, kReportProgressKey)->path));
  }
}

void Reporter::warn_inactive(const Draft& draft, std::vector<std::string>& warnings) const {
  for (const std::string_view key : {kHangThresholdKey, kHangPolicyKey})
    if (const auto setting = find_setting(draft, key))
      warnings.push_back(fmt::format("{} has no effect without annotation {}", setting->path,
                                     stall::kDetectHangsKey));
}

std::unique_ptr<const Plugin> make_reporter() {
  return std::make_unique<Reporter>();
}

}  // namespace pipeline
}  // namespace trainer
