// This plugin makes gangs for Kubernetes' own scheduler. Upstream has a proposal with the same
// policy (Kubeflow Trainer, docs/proposals/3015-workload-aware-scheduling), and no plugin yet.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/pipeline/gang.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_group.hh"

namespace trainer::pipeline {

namespace {

const kube::Resource kWorkloads{"scheduling.k8s.io", "v1beta1", "workloads", "Workload"};

bool asks_for_workload(const Runtime& runtime) {
  return runtime.spec.podGroupPolicy && runtime.spec.podGroupPolicy->workload;
}

std::vector<std::size_t> jobs_of_gang(const Draft& draft) {
  const std::vector<bool> members = gang_members(draft);
  std::vector<std::size_t> jobs;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i]) jobs.push_back(i);
  return jobs;
}

// Returns a member of the pods' spec with the API server's default.
std::string_view pod_text(const Draft& draft, std::size_t job, std::string_view member) {
  const std::string_view fallback = member == "schedulerName" ? "default-scheduler" : "";
  const std::string_view text = draft.pod_template(job).get("spec").get_string(member);
  return text.empty() ? fallback : text;
}

class Workload final : public Plugin {
 public:
  std::string_view source() const override { return "plugin workload"; }
  bool is_active(const Draft& draft) const override { return asks_for_workload(draft.runtime); }
  void enforce_pod_group_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  std::vector<std::string> priority_classes(const Runtime& runtime) const override;
};

}  // namespace

void Workload::enforce_pod_group_policy(Draft& draft) const {
  mark_gang(draft, gang::workload(), source());
}

// The scheduler reads the PodGroup alone. The Workload says which job it belongs to, and has the
// template of the group.
void Workload::add_dependents(Draft& draft) const {
  using kube::Json;
  gang::GroupRequest request;
  const std::vector<std::size_t> jobs = jobs_of_gang(draft);
  if (!jobs.empty()) request.priority_class = pod_text(draft, jobs.front(), "priorityClassName");
  DependentObject group = make_pod_group(draft, gang::workload(), std::move(request));
  Json& spec = group.object["spec"];
  Json group_template = spec;
  group_template.set("name", kTrainerStep);
  spec.set("workloadRef",
           Json::object({{"workloadName", draft.name()}, {"templateName", kTrainerStep}}));

  DependentObject workload;
  workload.resource = kWorkloads;
  Json job = Json::object({{"apiGroup", kTrainJobs.group}, {"kind", kTrainJobs.kind}});
  job.set("name", draft.name());
  workload.object = Json::object(
      {{"apiVersion", kWorkloads.api_version()},
       {"kind", kWorkloads.kind},
       {"metadata", group.object.get("metadata")},
       {"spec", Json::object({{"controllerRef", std::move(job)},
                              {"podGroupTemplates", Json::array({std::move(group_template)})}})}});
  draft.dependents.push_back(std::move(workload));
  draft.dependents.push_back(std::move(group));
}

// The rule is kube-scheduler's (validatePodGroup).
void Workload::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const std::vector<std::size_t> jobs = jobs_of_gang(draft);
  for (const std::string_view member : {"priorityClassName", "schedulerName"}) {
    const auto other = std::find_if(jobs.begin(), jobs.end(), [&](std::size_t job) {
      return pod_text(draft, job, member) != pod_text(draft, jobs.front(), member);
    });
    if (other == jobs.end()) continue;
    warnings.push_back(fmt::format(
        "spec.runtimeRef: {} \"{}\" has the jobs {} and {} in one gang, with \"{}\" and \"{}\" as "
        "{} of their pods: kube-scheduler places no pod of such a gang; set the same in both",
        draft.runtime.kind, draft.runtime.metadata.name, draft.pod_sets[jobs.front()].name,
        draft.pod_sets[*other].name, pod_text(draft, jobs.front(), member),
        pod_text(draft, *other, member), member));
  }
}

std::vector<std::string> Workload::priority_classes(const Runtime& runtime) const {
  return asks_for_workload(runtime) ? named_priority_classes(runtime) : std::vector<std::string>();
}

std::unique_ptr<const Plugin> make_workload() {
  return std::make_unique<Workload>();
}

}  // namespace trainer::pipeline
