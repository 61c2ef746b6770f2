#include "controller/kinds/batch/registration.hh"

#include <chrono>
#include <utility>

#include "controller/kinds/batch/job_controller.hh"
#include "controller/kinds/batch/scheduling_controller.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::StoredObject;
using kube::Watch;
using std::chrono::milliseconds;

constexpr const char* kOption = "local";
constexpr int kWorkers = 8;
// These waits are short: in local mode requests cost little, and users expect a job to start and
// end at once.
constexpr kube::DebounceTimes kDebounce{milliseconds(1), milliseconds(20), milliseconds(50),
                                        milliseconds(500)};

KindRegistration job_registration() {
  using Self = batch::JobController;
  KindRegistration made;
  made.option = kOption;
  made.controller.name = "job";
  made.controller.component = "job-controller";
  made.controller.group_kind = "Job.batch";
  made.controller.workers = kWorkers;
  made.controller.watches = {
      Watch::only_read<StoredObject>(all_of(kube::kJobs), kube::StoredObjectTransform(kube::kJobs)),
      indexed_batch_pods(Watch::of<Self, batch::BatchPodView>(batch_pods(), batch_pod_transform(),
                                                              &Self::on_pod))};
  made.controller.debounce = kDebounce;
  made.controller.make = [](const kube::ControllerContext& context) {
    return std::make_unique<Self>(context);
  };
  return made;
}

KindRegistration scheduler_registration() {
  using Self = batch::SchedulingController;
  KindRegistration made;
  made.option = kOption;
  made.controller.name = "scheduler";
  made.controller.component = "default-scheduler";
  made.controller.watches = {
      Watch::of<Self, batch::BatchPodView>(batch_pods(), batch_pod_transform(), &Self::on_pod),
      Watch::of<Self, JobView>(jobset_jobs(), job_transform(), &Self::on_job),
      Watch::of<Self, StoredObject>(all_of(kube::kNodes), kube::StoredObjectTransform(kube::kNodes),
                                    &Self::on_node)};
  made.controller.debounce = kDebounce;
  made.controller.make = [](const kube::ControllerContext& context) {
    return std::make_unique<Self>(context);
  };
  return made;
}

}  // namespace

Registry local_registry() {
  Registry registry;
  registry.push_back(job_registration());
  registry.push_back(scheduler_registration());
  return registry;
}

}  // namespace trainer
