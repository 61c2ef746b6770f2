// These are the reports about a TrainJob that cannot be read.
#include "runtimes/trainjob/unreadable.hh"

#include "kube/model/patch.hh"
#include "kube/tests/merge_patch.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

const kube::FieldErrors kErrors = {kube::invalid("spec.suspend", "yes", "must be a boolean")};

TEST_CASE("a job that cannot be read says so once") {
  const auto object = yaml("{metadata: {name: j}, spec: {suspend: 'yes'}}");
  const auto plan = plan_unreadable(object, kErrors);
  REQUIRE(plan.status_patch);
  CHECK(plan.actions.empty());
  CHECK_FALSE(plan.requeue_after);
  const auto& status = *plan.status_patch->find("status");
  CHECK(status.get_string("phase") == "Pending");
  CHECK(status.get_string("reason") == "Unreadable");
  CHECK(status.get_string("message").find("spec.suspend: Invalid value: \"yes\"") !=
        std::string::npos);
  REQUIRE(plan.events.size() == 1);
  CHECK(plan.events[0].type == "Warning");

  const auto again = plan_unreadable(kube::test::merge_patch(object, *plan.status_patch), kErrors);
  CHECK_FALSE(again.status_patch);
  CHECK(again.events.empty());
}

TEST_CASE("another fault is reported, and the phase stays what its pods have made it") {
  const auto object =
      yaml("{metadata: {name: j}, status: {phase: Running, reason: Unreadable, message: old}}");
  const auto plan = plan_unreadable(object, kErrors);
  REQUIRE(plan.status_patch);
  CHECK_FALSE(plan.status_patch->find_path({"status", "phase"}));
}

TEST_CASE("a status of another type is replaced, a long message cut") {
  kube::FieldErrors many;
  for (int i = 0; i < 1'000; ++i)
    many.push_back(kube::forbidden("spec.f" + std::to_string(i), "x"));
  const auto plan = plan_unreadable(yaml("{metadata: {name: j}, status: [1]}"), many);
  REQUIRE(plan.status_patch);
  const std::string message(plan.status_patch->find("status")->get_string("message"));
  CHECK_THAT(message, Catch::Contains("spec.f0: Forbidden: x"));
  CHECK(message.size() > 900);
  CHECK(message.size() <= 1'000);
}

TEST_CASE("nothing is written to what is no object: it would be written again each time") {
  const auto plan = plan_unreadable(kube::Json(), kErrors);
  CHECK_FALSE(plan.status_patch);
  CHECK(plan.events.size() == 1);
}

TEST_CASE("what has ended or goes is left as it is") {
  for (const char* text : {"{metadata: {name: j}, status: {phase: Complete}}",
                           "{metadata: {name: j}, status: {phase: Failed}}",
                           "{metadata: {name: j, deletionTimestamp: '2026-01-01T00:00:00Z'}}"}) {
    const auto plan = plan_unreadable(yaml(text), kErrors);
    CHECK_FALSE(plan.status_patch);
    CHECK(plan.events.empty());
  }
}

}  // namespace
}  // namespace trainer::test
