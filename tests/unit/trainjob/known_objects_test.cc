// A plan reads some objects by name, and reads them again once they may have changed.
#include "runtimes/trainjob/known_objects.hh"

#include <string>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

TEST_CASE("keys, and data of other owners, are not kept") {
  struct Row {
    kube::Resource resource;
    bool is_owned;
    bool is_kept;
  };
  const Json object = yaml("{metadata: {name: d, annotations: {a: b}}, data: {k: a key}}");
  for (const Row& row :
       {Row{kube::kSecrets, true, false}, Row{kube::kSecrets, false, false},
        Row{kube::kConfigMaps, true, true}, Row{kube::kConfigMaps, false, false}}) {
    INFO(row.resource.kind << " " << row.is_owned);
    const std::string text = kube::print_json(trim_dependent(row.resource, row.is_owned, object));
    CHECK((text.find("a key") != text.npos) == row.is_kept);
    CHECK((text.find("annotations") != text.npos) == row.is_kept);
  }
}

TEST_CASE("an object is read again once it may have changed") {
  const Json object = train_job();
  const kube::NamedObject hosts{kube::kConfigMaps, {"ns", "j-hosts"}};
  kube::ReadObject read{.object = std::make_shared<const Json>(Json::object())};
  read.stamp = {.shape = 7, .failures = 1};
  World world;
  TrainJob job = world.job();
  JobSet jobset;
  kube::NamedObjects known;
  TrainJobObserved observed{job, object, known};
  observed.shape = 7;
  observed.jobset = &jobset;
  jobset.status.restarts = 1;
  SECTION("nothing is different") {
    CHECK(is_dependent_current(observed, read));
  }
  SECTION("the job has changed") {
    observed.shape = 8;
    CHECK_FALSE(is_dependent_current(observed, read));
  }
  SECTION("a restart is counted") {
    jobset.status.restarts = 2;
    CHECK_FALSE(is_dependent_current(observed, read));
  }
  SECTION("the JobSet was made again") {
    jobset.metadata.uid = "a";
    CHECK(is_dependent_current(observed, read));  // it was read before there was a JobSet
    read.stamp = stamp_of(observed);
    CHECK(is_dependent_current(observed, read));
    jobset.metadata.uid = "b";
    jobset.status.restarts = 0;
    CHECK_FALSE(is_dependent_current(observed, read));
  }
  SECTION("the kubelet has just reported a mount") {
    observed.waiting_event = "FailedMount: no configmap";
    CHECK(is_dependent_current(observed, read));
    observed.is_waiting_event_new = true;
    CHECK_FALSE(is_dependent_current(observed, read));
    observed.waiting_event = "FailedScheduling: no GPUs";
    CHECK(is_dependent_current(observed, read));
  }
  SECTION("an object blocks the job, or is missing") {
    for (const Reason& reason : reasons::kAll) {
      INFO(reason.name);
      job.status.reason = reason;
      CHECK(is_dependent_current(observed, read) ==
            (reason.recheck != Reason::Recheck::kByReading));
    }
  }
  // An object that was read in this reconcile is known as it is now.
  read.is_new = true;
  CHECK(is_dependent_current(observed, read));
}

TEST_CASE("a job that nothing has reconciled yet has no snapshot") {
  const Json object = train_job();
  const TrainJob job = World().job();
  kube::NamedObjects known;
  const TrainJobObserved observed{job, object, known};
  REQUIRE(known_snapshot(observed));
  CHECK_FALSE(known_snapshot(observed)->exists());
  known.end_first_plan();
  CHECK_FALSE(known_snapshot(observed));
}

}  // namespace
}  // namespace trainer::test
