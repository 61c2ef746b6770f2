#include "controller/ui/progress.hh"

#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer::ui;
using kube::Json;
using kube::Time;

namespace {

ProgressReport report(std::int64_t at, std::int64_t percent, std::string loss = {}) {
  ProgressReport made;
  made.at = Time::from_seconds(at);
  made.percent = percent;
  if (!loss.empty()) made.metrics.emplace_back("loss", std::move(loss));
  return made;
}

std::string written(const ProgressReport& last, const Curves& curves) {
  Html html;
  write_progress(html, last, curves);
  return html.take();
}

std::size_t count_of(const std::string& text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("a report is read from the status of an object of any kind") {
  const auto read = [](const char* status) {
    return ProgressReport::read(*kube::parse_json(std::string(R"({"status":)") + status + "}"));
  };
  const ProgressReport full = read(R"({"trainerStatus":{"progressPercentage":40,
      "estimatedRemainingSeconds":90,"lastUpdatedTime":"2026-08-20T10:00:00Z",
      "metrics":[{"name":"loss","value":"0.5"}]}})");
  CHECK(full.percent == 40);
  CHECK(full.remaining_seconds == 90);
  CHECK(full.at == Time::parse("2026-08-20T10:00:00Z"));
  REQUIRE(full.metrics.size() == 1);
  CHECK(full.metrics[0] == std::pair<std::string, std::string>("loss", "0.5"));
  CHECK(!read("{}").at);
  CHECK(!read(R"({"trainerStatus":{"progressPercentage":40}})").at);
  CHECK(!read(R"({"trainerStatus":7})").at);
}

TEST_CASE("the history has each report once, in the order of time") {
  ProgressHistory history;
  CHECK(history.of("a").percent.empty());
  history.add("a", ProgressReport());
  CHECK(history.of("a").percent.empty());
  history.add("a", report(10, 5, "0.9"));
  history.add("a", report(10, 5, "0.9"));
  history.add("a", report(20, 30, "nan"));
  history.add("a", report(15, 10, "0.7"));
  history.add("b", report(5, 99));
  const Curves curves = history.of("a");
  REQUIRE(curves.percent.size() == 2);
  CHECK(curves.percent[1].value == 30);
  REQUIRE(curves.metrics.contains("loss"));
  CHECK(curves.metrics.at("loss").size() == 2);
  CHECK(history.of("b").percent.size() == 1);
}

TEST_CASE("a long job keeps its first and its last report, with a bound") {
  ProgressHistory history;
  constexpr int kReports = 10'000;
  for (int i = 0; i < kReports; ++i) history.add("a", report(i, i * 100 / kReports));
  const Series series = history.of("a").percent;
  CHECK(series.size() <= ProgressHistory::kMaxPoints);
  CHECK(series.size() >= ProgressHistory::kMaxPoints / 2);
  CHECK(series.front().at == Time::from_seconds(0));
  CHECK(series.back().at == Time::from_seconds(kReports - 1));
  for (std::size_t i = 1; i < series.size(); ++i) CHECK(series[i - 1].at < series[i].at);
}

TEST_CASE("jobs and metrics are bounded, and the job is forgotten that reported least recently") {
  ProgressHistory history;
  for (std::size_t i = 0; i <= ProgressHistory::kMaxJobs; ++i)
    history.add("job" + std::to_string(i), report(static_cast<std::int64_t>(i) + 1, 1));
  CHECK(history.of("job0").percent.empty());
  CHECK(history.of("job1").percent.size() == 1);
  ProgressReport many = report(1'000, 1);
  for (int i = 0; i < 100; ++i) many.metrics.emplace_back("m" + std::to_string(i), "1");
  history.add("many", many);
  CHECK(history.of("many").metrics.size() == ProgressHistory::kMaxMetrics);
}

TEST_CASE("the curve goes from the left below to where the last report is") {
  ProgressHistory history;
  history.add("a", report(0, 0));
  history.add("a", report(50, 25));
  history.add("a", report(100, 50));
  ProgressReport last = report(100, 50);
  CHECK(written(last, history.of("a")).find("0.0,120.0 300.0,90.0 600.0,60.0 ") !=
        std::string::npos);
  last.remaining_seconds = 100;
  const std::string estimated = written(last, history.of("a"));
  CHECK(estimated.find("0.0,120.0 150.0,90.0 300.0,60.0 ") != std::string::npos);
  CHECK(estimated.find("300.0,60.0 600,0") != std::string::npos);
  CHECK(estimated.find("about 100s remain") != std::string::npos);
}

TEST_CASE("metrics fill their field, whatever their numbers are") {
  struct Case {
    const char* first;
    const char* second;
    std::size_t curves;
  };
  const Case cases[] = {
      {"0.5", "0.25", 2}, {"1", "1", 2}, {"-1e308", "1e308", 2}, {"inf", "nan", 1}, {"a", "", 1}};
  for (const Case& c : cases) {
    CAPTURE(c.first, c.second);
    ProgressHistory history;
    history.add("a", report(0, 10, c.first));
    history.add("a", report(10, 20, c.second));
    const std::string text = written(report(10, 20, "<b>"), history.of("a"));
    CHECK(count_of(text, "<svg") == c.curves);
    CHECK(text.find("<b>") == std::string::npos);
    CHECK(text.find("&lt;b&gt;") != std::string::npos);
    CHECK(text.find("nan,") == std::string::npos);
    CHECK(text.find("inf,") == std::string::npos);
  }
  CHECK(written(ProgressReport(), Curves()).empty());
}

TEST_CASE("ages are those of kubectl") {
  const auto age = [](std::int64_t seconds) {
    return age_of(Time::from_seconds(1'000), Time::from_seconds(1'000 + seconds));
  };
  CHECK(age(-5) == "0s");
  CHECK(age(119) == "119s");
  CHECK(age(120) == "2m");
  CHECK(age(7'199) == "119m");
  CHECK(age(7'200) == "2h");
  CHECK(age(172'800) == "2d");
}
