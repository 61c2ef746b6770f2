// Values of labels are of a bounded number, whatever a status holds.
#include "runtimes/trainjob/measures.hh"

#include <algorithm>

#include "runtimes/trainjob/conditions.hh"
#include "runtimes/trainjob/waiting.hh"
#include "runtimes/views/pod.hh"
#include "tests/support/catch.hh"

namespace trainer {
namespace {

TrainJobStatus status(std::string phase, std::string reason) {
  TrainJobStatus made;
  made.phase = std::move(phase);
  made.reason = std::move(reason);
  return made;
}

TEST_CASE("phases and reasons of waiting") {
  CHECK(phase_of({}) == "Pending");
  CHECK(waiting_reason({}) == "CreatingPods");
  for (const char* phase : {"Queued", "Initializing", "Pending", "Starting", "Restarting",
                            "Suspended", "Running", "Complete", "Failed"}) {
    CHECK(phase_of(status(phase, "")) == phase);
  }
  CHECK(phase_of(status("Mine", "")) == "Other");
  CHECK(waiting_reason(status("Pending", "Unschedulable")) == "Unschedulable");
  CHECK(waiting_reason(status("Pending", "Mine")) == "Other");
  for (const char* phase : {"Running", "Complete", "Failed"})
    CHECK(waiting_reason(status(phase, "NodeFailed")).empty());
}

TEST_CASE("every reason that a waiting pod gives is known") {
  for (const char* said : {"SchedulingGated", "Unschedulable", "ErrImagePull",
                           "CreateContainerConfigError", "CreateContainerError", "CrashLoopBackOff",
                           "FailedMount", "FailedCreate", "JobCreationFailed", "something new"}) {
    PodView pod;
    pod.waiting_reason = said;
    const auto cause = dominant_cause({&pod});
    REQUIRE(cause);
    CAPTURE(said);
    CHECK(waiting_reason(status("Pending", cause->reason)) == cause->reason);
  }
}

TEST_CASE("why a job has failed") {
  TrainJobStatus failed;
  CHECK(failure_reason(failed).empty());
  fail(failed, "ReachedMaxRestarts", "m", {});
  CHECK(failure_reason(failed) == "ReachedMaxRestarts");
  TrainJobStatus strange;
  fail(strange, "Strange", "m", {});
  CHECK(failure_reason(strange) == "Other");
  for (const TrainJobStatus* each : {&failed, &strange})
    CHECK(std::ranges::count(failure_reasons(), failure_reason(*each)) == 1);
}

}  // namespace
}  // namespace trainer
