// The latest warning about an object, which explains why it makes no progress.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kube/manager/last_warning.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a warning of a pod holds until its next step has come") {
  const std::string no_room =
      R"({"type":"Warning","reason":"FailedScheduling","message":"no GPUs",)"
      R"("eventTime":"2026-08-20T10:00:00.000000Z"})";
  const auto normal = [](const std::string& reason) {
    return R"(,{"type":"Normal","reason":")" + reason +
           R"(","message":"m","lastTimestamp":"2026-08-20T10:00:05Z"})";
  };
  const std::string mount = R"(,{"type":"Warning","reason":"FailedMount","message":"no volume",)"
                            R"("lastTimestamp":"2026-08-20T10:00:06Z"})";
  // In the second in which another pod was created.
  const std::string refused =
      R"({"type":"Warning","reason":"FailedCreate","message":"exceeded quota",)"
      R"("lastTimestamp":"2026-08-20T10:00:05Z"})";
  const std::pair<std::string, std::string> rows[] = {
      {no_room, "FailedScheduling: no GPUs"},
      {no_room + normal("NotTriggerScaleUp"), "FailedScheduling: no GPUs"},
      {no_room + normal("Scheduled"), ""},
      {no_room + normal("Scheduled") + mount, "FailedMount: no volume"},
      {no_room + mount + normal("Scheduled"), "FailedMount: no volume"},
      {no_room + normal("SuccessfulCreate"), ""},
      {refused + normal("SuccessfulCreate"), "FailedCreate: exceeded quota"}};
  for (const auto& [events, kept] : rows) {
    CAPTURE(events);
    api.on("GET", "/api/v1/namespaces/n/events")
        .answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[)" + events + "]}");
    const auto last = std::make_shared<kube::LastWarning>();
    CHECK(kube::run_task(
        io, kube::read_last_warning(client, "n", kube::EventSource{"Pod", "p"}, last)));
    CHECK(last->text == kept);
  }
}

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "the events of an object are read every thirty seconds") {
  api.on("GET", "/api/v1/namespaces/n/events")
      .answer(200,
              R"({"metadata":{"resourceVersion":"9"},"items":[{"type":"Warning",)"
              R"("reason":"FailedCreate","message":"m","lastTimestamp":"2026-08-20T10:00:05Z"}]})")
      .always();
  const auto last = std::make_shared<kube::LastWarning>();
  const kube::EventSource job{"Job", "j-node-0"};
  const auto read = [&](std::optional<kube::EventSource> source) {
    return kube::run_task(io, kube::read_last_warning(client, "n", std::move(source), last));
  };
  CHECK(read(job));
  CHECK_FALSE(read(job));
  CHECK(last->text == "FailedCreate: m");
  SECTION("the plan asks about another object, which is read five seconds later") {
    CHECK(read(kube::EventSource{"Pod", "p"}));
    CHECK(last->text.empty());
    CHECK_FALSE(read(kube::EventSource{"Pod", "p"}));
    clock.advance(std::chrono::seconds(5));
    CHECK(read(kube::EventSource{"Pod", "p"}));
    CHECK(last->text == "FailedCreate: m");
  }
  SECTION("the plan needs them no more") {
    CHECK(read(std::nullopt));
    CHECK(last->text.empty());
    CHECK_FALSE(read(std::nullopt));
  }
}
