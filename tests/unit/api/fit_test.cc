// A status that is made to fit its schema: the API server takes it.
#include <algorithm>
#include <string>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

namespace trainer {
namespace {

using kube::Json;

kube::Condition condition(std::string type) {
  kube::Condition made;
  made.type = std::move(type);
  made.status = "True";
  made.reason = "Because";
  made.message = std::string(40'000, 'm');
  made.last_transition_time = kube::Time::from_seconds(1'800'000'000);
  return made;
}

// Returns the errors that the API server would find in an object with this status.
template <class Status>
std::string errors_of(std::string_view kind, const Status& status) {
  Json object = Json::object({{"kind", kind}, {"status", write(status)}});
  std::string found;
  for (const auto& error : check_schema(object)) {
    const std::string text = kube::to_string({error});
    if (text.find("status") != std::string::npos) found += text + "\n";
  }
  return found;
}

TEST_CASE("a TrainJob's status that is too large in every way") {
  TrainJobStatus status;
  for (int i = 0; i < 10; ++i) status.conditions.push_back(condition("C" + std::to_string(i)));
  for (int i = 0; i < 150; ++i) {
    JobStatus job;
    job.name = std::to_string(i) + std::string(300, 'x');
    job.active = -1;
    status.jobsStatus.push_back(std::move(job));
  }
  status.phase = "Running";
  status.reason = std::string(2'000, 'r');
  status.message = std::string(32'767, 'x') + "\xc3\xbc";  // ends inside of a character
  status.nodes.emplace();
  status.nodes->ready = -3;
  status.restarts = -1;
  status.firstFailure.emplace();
  status.firstFailure->message = std::string(5'000, 'f');
  status.firstFailure->index = -1;
  status.runtimeSnapshotHash = std::string(100, 'h');
  status.trainerStatus.emplace();
  status.trainerStatus->progressPercentage = 200;
  status.trainerStatus->lastUpdatedTime = kube::Time::from_seconds(1'800'000'000);
  REQUIRE_FALSE(errors_of("TrainJob", status).empty());

  const auto cuts = fit(status);
  CHECK(errors_of("TrainJob", status) == "");
  CHECK(status.jobsStatus.size() == 100);
  CHECK(status.message == std::string(32'767, 'x'));
  CHECK(status.trainerStatus->progressPercentage == 100);
  CHECK(status.restarts == 0);
  CHECK(std::count(cuts.begin(), cuts.end(),
                   "jobsStatus has a length of 150, and 100 is the most that the API takes: the "
                   "rest is left out") == 1);
  CHECK(fit(status).empty());
}

TEST_CASE("a JobSet's status that is too large") {
  JobSetStatus status;
  status.conditions.push_back(condition("Failed"));
  ReplicatedJobStatus job;
  job.name = "a";
  job.jobRestarts.assign(2'000, 1);
  status.replicatedJobsStatus.push_back(job);
  status.currentInPlaceRestartAttempt = -1;
  REQUIRE_FALSE(errors_of("JobSet", status).empty());
  CHECK(fit(status).size() == 2);
  CHECK(errors_of("JobSet", status) == "");
}

TEST_CASE("a status that fits stays as it is") {
  TrainJobStatus status;
  status.phase = "Running";
  status.jobsStatus.resize(100);
  const TrainJobStatus before = status;
  CHECK(fit(status).empty());
  CHECK(status == before);
}

}  // namespace
}  // namespace trainer
