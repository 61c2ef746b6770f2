#include "controller/ui/progress.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace trainer::ui {
namespace {

constexpr double kWidth = 600;
constexpr double kHeight = 120;

void add_point(Series& series, Point point) {
  if (!series.empty() && point.at <= series.back().at) return;
  if (series.size() == ProgressHistory::kMaxPoints) {
    for (std::size_t i = 0; 2 * i < series.size(); ++i) series[i] = series[2 * i];
    series.resize(series.size() / 2);
  }
  series.push_back(point);
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

double seconds_of(kube::Time at) {
  return std::chrono::duration<double>(at.point().time_since_epoch()).count();
}

struct Bounds {
  double low = 0;
  double high = 100;
  kube::Time end;  // the right side; later than the last point where the end is estimated
};

// The curve of a metric fills its field from its lowest to its highest value.
Bounds bounds_of(const Series& series) {
  const auto [low, high] =
      std::minmax_element(series.begin(), series.end(),
                          [](const Point& a, const Point& b) { return a.value < b.value; });
  return {low->value, high->value, series.back().at};
}

void write_curve(Html& html, std::string_view title, const Series& series, const Bounds& bounds) {
  const double begin = seconds_of(series.front().at);
  const double length = std::max(seconds_of(bounds.end) - begin, 1.0);
  // The difference of huge numbers may be infinite.
  const double range = std::max(bounds.high / 2 - bounds.low / 2, 1e-300);
  const auto place = [&](kube::Time at, double value) {
    const double height = std::clamp((value / 2 - bounds.low / 2) / range, 0.0, 1.0);
    return fmt::format("{:.1f},{:.1f}", (seconds_of(at) - begin) / length * kWidth,
                       (1 - height) * kHeight);
  };
  std::string points;
  for (const Point& each : series) points += place(each.at, each.value) + " ";
  const std::string last = place(series.back().at, series.back().value);
  html.begin("figure").begin("figcaption").text(title).end();
  html.begin("svg", {{"viewBox", "-4 -6 608 132"},
                     {"role", "img"},
                     {"aria-label", fmt::format("{}: {} reports, the last is {:g}", title,
                                                series.size(), series.back().value)}});
  html.element("polyline", "", {{"class", "axis"}, {"points", "0,0 0,120 600,120"}});
  if (bounds.end > series.back().at)
    html.element("polyline", "", {{"class", "estimate"}, {"points", last + " 600,0"}});
  html.element("polyline", "", {{"class", "curve"}, {"points", points}});
  html.element("circle", "",
               {{"class", "last"},
                {"r", "3"},
                {"cx", last.substr(0, last.find(','))},
                {"cy", last.substr(last.find(',') + 1)}});
  html.end();
  html.element("small", fmt::format("{:g} to {:g}, over {}", bounds.low, bounds.high,
                                    age_of(series.front().at, bounds.end)));
  html.end();
}

}  // namespace

ProgressReport ProgressReport::read(const kube::Json& job) {
  const kube::Json& status = job.get_path({"status", "trainerStatus"});
  ProgressReport report;
  report.at = kube::Time::parse(status.get_string("lastUpdatedTime"));
  if (!report.at) return report;
  const auto number = [&status](const char* name) -> std::optional<std::int64_t> {
    const kube::Json& value = status.get(name);
    return value.is_int() ? std::optional(value.as_int()) : std::nullopt;
  };
  report.percent = number("progressPercentage");
  report.remaining_seconds = number("estimatedRemainingSeconds");
  for (const kube::Json& metric : status.get_array("metrics"))
    report.metrics.emplace_back(metric.get_string("name"), metric.get_string("value"));
  return report;
}

void ProgressHistory::add(const std::string& uid, const ProgressReport& report) {
  if (!report.at) return;
  Kept& kept = jobs_[uid];
  kept.last = *report.at;
  if (report.percent)
    add_point(kept.curves.percent, {*report.at, static_cast<double>(*report.percent)});
  for (const auto& [name, text] : report.metrics) {
    const auto value = number_of(text);
    auto& metrics = kept.curves.metrics;
    if (value && (metrics.size() < kMaxMetrics || metrics.contains(name)))
      add_point(metrics[name], {*report.at, *value});
  }
  if (jobs_.size() <= kMaxJobs) return;
  jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
    return a.second.last < b.second.last;
  }));
}

Curves ProgressHistory::of(const std::string& uid) const {
  const auto at = jobs_.find(uid);
  return at == jobs_.end() ? Curves() : at->second.curves;
}

std::string age_of(kube::Time then, kube::Time now) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t seconds = std::max<std::int64_t>(0, now.seconds() - then.seconds());
  if (seconds < 2 * kMinute) return fmt::format("{}s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{}m", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{}h", seconds / kHour);
  return fmt::format("{}d", seconds / kDay);
}

void write_progress(Html& html, const ProgressReport& report, const Curves& curves) {
  if (!report.at) return;
  html.element("h2", "Progress");
  html.begin("p", {{"class", "progress"}});
  if (report.percent) html.element("strong", fmt::format("{} %", *report.percent));
  if (report.remaining_seconds)
    html.text(fmt::format(" about {} remain",
                          age_of(*report.at, report.at->after(*report.remaining_seconds))));
  html.text(", reported at " + report.at->to_string()).end();
  if (!curves.percent.empty()) {
    const kube::Time last = curves.percent.back().at;
    const bool has_end = report.remaining_seconds && report.percent.value_or(100) < 100;
    write_curve(html, "Progress in per cent", curves.percent,
                {0, 100, has_end ? last.after(*report.remaining_seconds) : last});
  }
  for (const auto& [name, series] : curves.metrics)
    write_curve(html, name, series, bounds_of(series));
  if (report.metrics.empty()) return;
  html.begin("table").begin("tbody");
  for (const auto& [name, value] : report.metrics)
    html.begin("tr").element("th", name).element("td", value).end();
  html.end().end();
}

}  // namespace trainer::ui
