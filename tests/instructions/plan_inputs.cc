// plan() of a TrainJob and of a JobSet, on objects that were read before.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/api.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/plan.hh"
#include "tests/instructions/figures.hh"
#include "tests/instructions/objects.hh"

namespace trainer::instructions {
namespace {

const kube::Time kNow = kube::Time::from_seconds(1'767'226'200);  // ten minutes after the objects

template <class Read>
auto read(const Read& reader, const kube::Json& object) {
  auto read = reader(object);
  if (!read) fail(kube::to_string(read.error()));
  return std::move(*read);
}

jobset::Observed observed_jobset(const JobSet& jobset) {
  jobset::Observed observed{jobset};
  observed.now = kNow;
  observed.decorators = production_job_decorators();
  observed.is_managed_here = true;
  observed.is_of_trainjob = true;
  return observed;
}

}  // namespace

void plan_trainjob_new(int times) {
  const kube::Json stored = object("trainjob-new");
  const TrainJob job = read(read_trainjob, stored);
  kube::NamedObjects objects;
  objects.set(snapshot_object(job), {});
  objects.set(runtime_object(job),
              {.content = snapshot_of(object("clustertrainingruntime")), .is_new = true});
  TrainJobObserved observed{job, stored, objects};
  observed.now = kNow;
  const PipelineOptions options(production_plugins());
  for (int i = 0; i < times; ++i) {
    if (plan_trainjob(observed, options).actions.size() != 2) fail("not a ConfigMap and a JobSet");
  }
}

void plan_trainjob_running(int times) {
  const kube::Json stored = object("trainjob");
  const kube::Json stored_jobset = object("jobset");
  const TrainJob job = read(read_trainjob, stored);
  const JobSet jobset = read(read_jobset, stored_jobset);
  kube::NamedObjects objects;
  const kube::Json config_map = object("configmap");
  objects.set(snapshot_object(job),
              {.object = std::make_shared<const kube::Json>(kube::Json::object()),
               .content = snapshot_from(config_map.find_path({"data", "runtime"})->as_string()),
               .controller_uid = job.metadata.uid});
  TrainJobObserved observed{job, stored, objects};
  observed.jobset = &jobset;
  observed.jobset_object = &stored_jobset;
  std::vector<std::shared_ptr<PodView>> pods;
  for (const char* name : {"pod-0", "pod-1", "pod-2", "pod-3"}) {
    pods.push_back(transform_pod(std::string_view(object_text(name))));
    observed.pods.push_back(pods.back().get());
  }
  observed.total_nodes = 4;
  observed.now = kNow;
  const PipelineOptions options(production_plugins());
  for (int i = 0; i < times; ++i) {
    const TrainJobPlan plan = plan_trainjob(observed, options);
    if (!plan.actions.empty() || plan.status_patch) fail("a plan for a job that has not changed");
  }
}

void plan_jobset_new(int times) {
  kube::Json stored = object("jobset");
  stored.erase("status");
  const JobSet jobset = read(read_jobset, stored);
  const jobset::Observed observed = observed_jobset(jobset);
  for (int i = 0; i < times; ++i) {
    if (jobset::plan(observed).actions.size() != 2) fail("not a Service and a Job");
  }
}

void plan_jobset_running(int times) {
  const JobSet jobset = read(read_jobset, object("jobset"));
  const auto job = transform_job(object_text("job"));
  jobset::Observed observed = observed_jobset(jobset);
  observed.jobs.push_back(job.get());
  observed.service_exists = true;
  for (int i = 0; i < times; ++i) {
    const kube::Plan plan = jobset::plan(observed);
    if (!plan.actions.empty() || plan.status_patch)
      fail("a plan for a JobSet that has not changed");
  }
}

}  // namespace trainer::instructions
