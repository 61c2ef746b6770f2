// A Job that has not ended has the condition Suspended (pkg/controller/job/job_controller.go,
// syncJob). The pods of a suspended Job are deleted in manage.cc.
#include "runtimes/batch/policies.hh"

namespace trainer::batch {

void sync_suspension(Context& context) {
  if (context.job.is_suspended) {
    if (!context.set_condition("Suspended", true, "JobSuspended", "Job suspended")) return;
    context.report("Normal", "Suspended", "Job suspended");
    // Its template may change until it starts again.
    context.status.erase("startTime");
    return;
  }
  if (!context.set_condition("Suspended", false, "JobResumed", "Job resumed")) return;
  context.report("Normal", "Resumed", "Job resumed");
  // activeDeadlineSeconds counts from here.
  context.status.set("startTime", context.observed.now.to_string());
}

}  // namespace trainer::batch
