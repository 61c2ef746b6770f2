// These parts of the objects are kept that a TrainJob's plan asks for by name.
#include "controller/kinds/trainjob/job_reader.hh"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

std::string object(const std::string& kind, const std::string& name, const std::string& uid) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"{}","metadata":{{"name":"{}","namespace":"n","uid":"x",
      "resourceVersion":"1","annotations":{{"a":"an annotation"}},"ownerReferences":[{{
        "apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":"j","uid":"{}",
        "controller":true}}]}},"data":{{"ssh-privatekey":"a key"}}}})",
      kind, name, uid);
}

struct Fixture : trainer::test::IdleManager {
  JobReader reader{client, jobsets(), false};
  std::shared_ptr<JobState> state = std::make_shared<JobState>();

  // The text of all that is kept once this object has been read.
  std::string kept_of(const kube::Resource& resource, const std::string& name,
                      const std::string& owner_uid) {
    api.on("GET", fmt::format("/api/v1/namespaces/n/{}/{}", resource.plural, name))
        .answer(200, object(resource.kind, name, owner_uid));
    TrainJob job;
    job.metadata.name = "j";
    job.metadata.ns = "n";
    job.metadata.uid = "u";
    TrainJobPlan plan;
    plan.needs_dependents.push_back({resource, {"n", name}});
    JobReader::Reads reads;
    const auto has_read = kube::run_task(io, reader.read_needs(job, plan, state, reads));
    REQUIRE(has_read);
    CHECK(*has_read);
    CHECK(state->dependents.at(dependent_name(resource, name)));
    return text();
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, object] : state->dependent_objects)
      all += name + " " + kube::print_json(*object) + "\n";
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a warning of a pod holds until its next step has come") {
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
    const auto last = std::make_shared<LastWarning>();
    CHECK(kube::run_task(io, read_last_warning(client, "n", kube::EventSource{"Pod", "p"}, last)));
    CHECK(last->text == kept);
  }
}

TEST_CASE_METHOD(Fixture, "the events of an object are read every thirty seconds") {
  api.on("GET", "/api/v1/namespaces/n/events")
      .answer(200,
              R"({"metadata":{"resourceVersion":"9"},"items":[{"type":"Warning",)"
              R"("reason":"FailedCreate","message":"m","lastTimestamp":"2026-08-20T10:00:05Z"}]})")
      .always();
  const auto last = std::make_shared<LastWarning>();
  const kube::EventSource job{"Job", "j-node-0"};
  const auto read = [&](std::optional<kube::EventSource> source) {
    return kube::run_task(io, read_last_warning(client, "n", std::move(source), last));
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

TEST_CASE_METHOD(Fixture, "of a Secret that was read only its owner is kept") {
  for (const char* const owner : {"u", "another"}) {
    state = std::make_shared<JobState>();
    const std::string kept = kept_of(kube::kSecrets, "j-mpi-ssh-auth", owner);
    CHECK_THAT(kept, Catch::Contains(fmt::format(R"("uid":"{}")", owner)));
    CHECK_THAT(kept, !Catch::Contains(R"("data")") && !Catch::Contains("a key"));
  }
}

TEST_CASE_METHOD(Fixture, "of a Secret that was written nothing is kept") {
  kube::Action create;
  create.verb = kube::Action::Verb::kCreate;
  create.resource = kube::kSecrets;
  create.key = {"n", "j-mpi-ssh-auth"};
  create.body = *kube::parse_json(object("Secret", "j-mpi-ssh-auth", "u"));
  kept_of(kube::kSecrets, "j-mpi-ssh-auth", "u");
  reader.remember({create}, *state);
  CHECK(state->dependents.at("Secret/j-mpi-ssh-auth"));
  CHECK(text().empty());
}

TEST_CASE_METHOD(Fixture, "of an object of another owner only the owner is kept") {
  CHECK_THAT(kept_of(kube::kConfigMaps, "j-hosts", "another"),
             Catch::Contains("another") && !Catch::Contains(R"("data")"));
  state = std::make_shared<JobState>();
  CHECK_THAT(kept_of(kube::kConfigMaps, "j-hosts", "u"),
             Catch::Contains(R"("data")") && Catch::Contains("an annotation"));
}
