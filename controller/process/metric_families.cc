#include "controller/process/metric_families.hh"

#include <algorithm>
#include <string>
#include <utility>

namespace trainer {
namespace {

void add_gauge(prometheus::MetricFamily& family,
               std::vector<prometheus::ClientMetric::Label> labels, std::size_t value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = static_cast<double>(value);
  family.metric.push_back(std::move(metric));
}

}  // namespace

void add_jobs(MetricFamilies& families, const JobCensus& census) {
  using prometheus::MetricType;
  prometheus::MetricFamily jobs{
      "trainer_jobs", "Jobs by kind, phase, namespace and runtime.", MetricType::Gauge, {}};
  for (const auto& [labels, count] : census.jobs()) {
    add_gauge(jobs,
              {{"kind", labels.kind},
               {"namespace", labels.ns},
               {"phase", labels.phase},
               {"runtime", labels.runtime}},
              count);
  }
  prometheus::MetricFamily waits{"trainer_jobs_waiting",
                                 "Jobs that neither run nor have ended, by kind and reason.",
                                 MetricType::Gauge,
                                 {}};
  for (const auto& [wait, count] : census.waits())
    add_gauge(waits, {{"kind", wait.kind}, {"reason", wait.reason}}, count);
  families.push_back(std::move(jobs));
  families.push_back(std::move(waits));
  prometheus::MetricFamily slow{"trainer_jobs_with_stragglers",
                                "Jobs that run and of which some ranks are slow, by kind.",
                                MetricType::Gauge,
                                {}};
  for (const auto& [kind, count] : census.slow()) add_gauge(slow, {{"kind", kind}}, count);
  families.push_back(std::move(slow));
}

void add_work_durations(MetricFamilies& families) {
  const auto at = std::find_if(families.begin(), families.end(), [](const auto& family) {
    return family.name == "controller_runtime_reconcile_time_seconds";
  });
  if (at == families.end()) return;
  prometheus::MetricFamily copy = *at;
  copy.name = "workqueue_work_duration_seconds";
  copy.help = "Time that a worker spent on a key.";
  for (prometheus::ClientMetric& metric : copy.metric) {
    const std::string controller = metric.label.front().value;
    metric.label = {{"controller", controller}, {"name", controller}};
  }
  families.push_back(std::move(copy));
}

}  // namespace trainer
