#include "controller/status/report.hh"

#include "controller/status/token_verifier.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const char* const kTime = R"("lastUpdatedTime":"2026-08-20T12:00:00.123456+02:00")";

std::string body(const std::string& members) {
  return R"({"trainerStatus":{)" + members + "}}";
}

}  // namespace

TEST_CASE("a whole report is read, its time as the API stores it") {
  const auto report = read_report(
      body(
          std::string(kTime) +
          R"(,"progressPercentage":42,"estimatedRemainingSeconds":120,"metrics":[{"name":"loss","value":"nan"}],"new":1)"),
      "j");
  REQUIRE(report);
  CHECK(report->trainer_status == *kube::parse_json(R"({"lastUpdatedTime":"2026-08-20T10:00:00Z",
      "progressPercentage":42,"estimatedRemainingSeconds":120,"metrics":[{"name":"loss","value":"nan"}]})"));
  CHECK(report->dropped_metrics == 0);
}

TEST_CASE("a body without trainerStatus means nothing to write") {
  for (const char* text : {"{}", R"({"trainerStatus":null})", R"({"other":1})"}) {
    const auto report = read_report(text, "j");
    REQUIRE(report);
    CHECK(report->trainer_status.is_null());
  }
}

TEST_CASE("a metric that the API would refuse is left out, the others stay") {
  const std::string long_text(65, 'x');
  const std::string sixty_four_umlauts = [] {
    std::string text;
    for (int i = 0; i < 64; ++i) text += "\xc3\xbc";
    return text;
  }();
  const auto report = read_report(
      body(std::string(kTime) +
           R"(,"metrics":[{"name":"","value":"1"},{"name":"a","value":""},{"name":"b","value":1},7,
        {"name":"c"},{"name":")" +
           long_text + R"(","value":"1"},{"name":"d","value":")" + sixty_four_umlauts +
           R"("},{"name":"e","value":"1","extra":2}])"),
      "j");
  REQUIRE(report);
  CHECK(report->dropped_metrics == 6);
  const auto& metrics = report->trainer_status.get_array("metrics");
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].get_string("name") == "d");
  CHECK(metrics[1] == Json::object({{"name", "e"}, {"value", "1"}}));
}

TEST_CASE("of more than 256 metrics the first are kept") {
  std::string metrics;
  for (int i = 0; i < 300; ++i) {
    metrics +=
        (i ? "," : "") + std::string(R"({"name":"m)") + std::to_string(i) + R"(","value":"1"})";
  }
  const auto report = read_report(body(std::string(kTime) + ",\"metrics\":[" + metrics + "]"), "j");
  REQUIRE(report);
  CHECK(report->trainer_status.get_array("metrics").size() == 256);
  CHECK(report->dropped_metrics == 44);
}

TEST_CASE("values that the API refuses are refused in its words, with the job's name") {
  struct Case {
    std::string members;
    const char* message;
  };
  const Case cases[] = {
      {std::string(kTime) + ",\"progressPercentage\":150",
       "TrainJob.trainer.kubeflow.org \"j\" is invalid: status.trainerStatus.progressPercentage: "
       "Invalid value: 150: "
       "must be between 0 and 100"},
      {std::string(kTime) + ",\"estimatedRemainingSeconds\":-1",
       "TrainJob.trainer.kubeflow.org \"j\" is invalid: "
       "status.trainerStatus.estimatedRemainingSeconds: Invalid value: "
       "-1: must be greater than or equal to 0"},
      {"\"progressPercentage\":1",
       "TrainJob.trainer.kubeflow.org \"j\" is invalid: status.trainerStatus: Invalid value: "
       "{\"progressPercentage\":1}: lastUpdatedTime is required when trainerStatus is present"},
  };
  for (const Case& c : cases) {
    const auto report = read_report(body(c.members), "j");
    REQUIRE_FALSE(report);
    CHECK(report.error().code == kube::ErrorCode::kInvalid);
    CHECK(report.error().message == c.message);
  }
}

TEST_CASE("a body that is not a report is unreadable") {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string(R"({"trainerStatus":[]})"),
        body(R"("progressPercentage":"42")"), body(R"("progressPercentage":4294967296)"),
        body(R"("lastUpdatedTime":"yesterday")"), body(R"("lastUpdatedTime":7)"),
        body(std::string(kTime) + R"(,"metrics":{})"), std::string(100'000, '[')}) {
    CAPTURE(text.substr(0, 60));
    const auto report = read_report(text, "j");
    REQUIRE_FALSE(report);
    CHECK(report.error().code == kube::ErrorCode::kParse);
  }
}

TEST_CASE("only the status of a TrainJob is a report's path") {
  const std::string prefix = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/";
  CHECK(read_report_path(prefix + "team-a/trainjobs/llama/status", "status") ==
        kube::ObjectKey{"team-a", "llama"});
  for (const char* rest :
       {"team-a/trainjobs/llama", "team-a/trainjobs//status", "/trainjobs/llama/status",
        "team-a/trainjobs/a/b/status", "team-a/trainjobs/../status", "a/b/trainjobs/c/status",
        "team-a/trainjobs/A/status", "team-a/jobs/llama/status"}) {
    CAPTURE(rest);
    CHECK_FALSE(read_report_path(prefix + rest, "status"));
  }
  CHECK_FALSE(read_report_path("/", "status"));
  // One '/' cannot end the prefix and begin the suffix.
  CHECK_FALSE(read_report_path(prefix + "status", "status"));
}

TEST_CASE("a bearer token is the second of two words") {
  CHECK(bearer_token("Bearer abc") == "abc");
  CHECK(bearer_token("  bEARER \t abc  ") == "abc");
  for (const char* text : {"", "abc", "Bearer", "Basic abc", "Bearer a b", "Bearerabc"}) {
    CAPTURE(text);
    CHECK(bearer_token(text).empty());
  }
  CHECK(status_audience({"ns", "j"}) ==
        "trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/j/status");
}
