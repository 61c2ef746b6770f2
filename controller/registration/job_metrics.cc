#include "controller/registration/job_metrics.hh"

#include <algorithm>
#include <utility>

namespace trainer {
namespace {

constexpr JobStep kSteps[] = {JobStep::kJobSet, JobStep::kFirstPod, JobStep::kRunning};

const char* name_of(JobStep step) {
  if (step == JobStep::kJobSet) return "jobset";
  return step == JobStep::kFirstPod ? "first_pod" : "running";
}

const char* text_of(JobStep step) {
  if (step == JobStep::kJobSet) return "its JobSet exists";
  return step == JobStep::kFirstPod ? "its first pod exists" : "its status says that it runs";
}

}  // namespace

bool JobCensus::is_full(const Labels& labels) const {
  if (jobs_.contains(labels)) return false;
  const auto of_namespace = of_namespaces_.find(labels.ns);
  return jobs_.size() >= kMaxSeries ||
         (of_namespace != of_namespaces_.end() && of_namespace->second >= kMaxSeriesOfNamespace);
}

const JobCensus::Labels& JobCensus::enter(Labels labels) {
  if (is_full(labels)) labels.runtime = kOther;
  if (is_full(labels)) labels.ns = kOther;
  const auto [at, is_new] = jobs_.try_emplace(std::move(labels));
  if (is_new) ++of_namespaces_[at->first.ns];
  ++at->second;
  return at->first;
}

void JobCensus::leave(const Labels& labels) {
  const auto at = jobs_.find(labels);
  if (at == jobs_.end() || --at->second > 0) return;
  const auto of_namespace = of_namespaces_.find(at->first.ns);
  if (--of_namespace->second == 0) of_namespaces_.erase(of_namespace);
  jobs_.erase(at);
}

const JobCensus::Wait& JobCensus::enter(Wait wait) {
  const auto at = waits_.try_emplace(std::move(wait)).first;
  ++at->second;
  return at->first;
}

void JobCensus::leave(const Wait& wait) {
  const auto at = waits_.find(wait);
  if (at != waits_.end() && --at->second == 0) waits_.erase(at);
}

const std::string& JobCensus::enter_slow(const std::string& kind) {
  const auto at = slow_.try_emplace(kind).first;
  ++at->second;
  return at->first;
}

void JobCensus::leave_slow(const std::string& kind) {
  const auto at = slow_.find(kind);
  if (at != slow_.end() && --at->second == 0) slow_.erase(at);
}

std::string_view JobCensus::label_of_counter(const std::string& ns) {
  if (counted_namespaces_.size() < kMaxCountedNamespaces) counted_namespaces_.insert(ns);
  return counted_namespaces_.contains(ns) ? std::string_view(ns) : kOther;
}

std::string_view JobCensus::label_of_counter(std::string_view ns_label, std::string_view runtime) {
  std::pair<std::string, std::string> pair(ns_label, runtime);
  if (counted_runtimes_.contains(pair)) return runtime;
  if (counted_runtimes_.size() >= kMaxCountedRuntimes) return kOther;
  counted_runtimes_.insert(std::move(pair));
  return runtime;
}

JobRecord::~JobRecord() {
  if (counted_) census_->leave(*counted_);
  if (waiting_) census_->leave(*waiting_);
  if (slow_) census_->leave_slow(*slow_);
}

JobMetrics::JobMetrics(std::shared_ptr<JobCensus> census, kube::ManagerMetrics& metrics,
                       const kube::Clock& clock, const Kind& kind)
    : census_(std::move(census)), metrics_(metrics), clock_(clock), kind_(kind.name) {
  // If a counter appears with its first event, queries do not see that event.
  for (const JobStep step : kSteps)
    if (step != JobStep::kJobSet || kind.has_jobset) observe(step, std::nullopt);
  for (const std::string_view reason : kind.failures) failed(reason, 0);
  for (const char* const result : {"succeeded", "failed"}) metrics_.finished(kind_, result, 0);
  count_restarts("failure", 0);
  if (kind.counts_disruptions) count_restarts("disruption", 0);
  if (kind.counts_processes) count_restarts("process", 0);
}

void JobMetrics::update(JobRecord& record, const JobFacts& facts) const {
  if (!record.census_) return begin(record, facts);
  if ((record.awaited_ & facts.steps) != 0) observe_steps(record, facts.steps);
  if (facts.restarts) {
    const JobRestarts before = std::exchange(record.restarts_, *facts.restarts);
    restarted("failure", facts.restarts->failures - before.failures);
    restarted("disruption", facts.restarts->disruptions - before.disruptions);
    restarted("process", facts.restarts->processes - before.processes);
  }
  if (facts.times) count_times(record, facts);
  const bool is_elsewhere = record.counted_->phase != facts.phase;
  const std::string_view waiting =
      record.waiting_ ? std::string_view(record.waiting_->reason) : std::string_view();
  const bool was_slow = record.slow_ != nullptr;
  if (!is_elsewhere && waiting == facts.waiting && was_slow == facts.has_stragglers)
    return;  // this is so nearly always
  if (is_elsewhere && !facts.failure.empty()) failed(facts.failure, 1);
  place(record, facts);
}

void JobMetrics::begin(JobRecord& record, const JobFacts& facts) const {
  record.census_ = census_;
  record.awaited_ = facts.has_run ? 0 : static_cast<std::uint8_t>(~facts.steps);
  record.restarts_ = facts.restarts.value_or(JobRestarts());
  record.times_ = facts.times.value_or(JobTimes());
  const kube::Time latest = facts.created + std::chrono::seconds(1);
  record.posted_ = std::clamp(clock_.now(), facts.created, latest);
  place(record, facts);
}

void JobMetrics::place(JobRecord& record, const JobFacts& facts) const {
  if (record.counted_) census_->leave(*record.counted_);
  if (record.waiting_) census_->leave(*record.waiting_);
  if (record.slow_) census_->leave_slow(*record.slow_);
  record.counted_ = &census_->enter(JobCensus::Labels{
      kind_, std::string(facts.phase), std::string(facts.ns), std::string(facts.runtime)});
  record.waiting_ = facts.waiting.empty()
                        ? nullptr
                        : &census_->enter(JobCensus::Wait{kind_, std::string(facts.waiting)});
  record.slow_ = facts.has_stragglers ? &census_->enter_slow(kind_) : nullptr;
}

void JobMetrics::observe_steps(JobRecord& record, std::uint8_t steps) const {
  const auto took = std::max(clock_.now() - record.posted_, std::chrono::microseconds(0));
  for (const JobStep step : kSteps) {
    const auto bit = static_cast<std::uint8_t>(step);
    if ((record.awaited_ & steps & bit) != 0) observe(step, took);
  }
  record.awaited_ = static_cast<std::uint8_t>(record.awaited_ & ~steps);
}

void JobMetrics::observe(JobStep step, std::optional<std::chrono::duration<double>> took) const {
  const std::string name = name_of(step);
  metrics_.observe("trainer_job_time_to_" + name + "_seconds",
                   std::string("Time from the POST of a job until ") + text_of(step) + ".",
                   {{"kind", kind_}}, took);
}

void JobMetrics::failed(std::string_view reason, std::uint32_t times) const {
  metrics_.count("trainer_job_failures_total", "Jobs that have failed, by kind and reason.",
                 {{"kind", kind_}, {"reason", std::string(reason)}}, times);
}

void JobMetrics::restarted(std::string_view cause, std::int32_t times) const {
  // The number is less than before if the JobSet was made again.
  if (times > 0) count_restarts(cause, static_cast<std::uint32_t>(times));
}

void JobMetrics::count_restarts(std::string_view cause, std::uint32_t times) const {
  metrics_.count("trainer_job_restarts_total", "Restarts of jobs, by kind and cause.",
                 {{"kind", kind_}, {"cause", std::string(cause)}}, times);
}

void JobMetrics::count_times(JobRecord& record, const JobFacts& facts) const {
  const JobTimes before = std::exchange(record.times_, *facts.times);
  if (before == record.times_) return;
  const std::string ns(census_->label_of_counter(std::string(facts.ns)));
  const std::string runtime(census_->label_of_counter(ns, facts.runtime));
  constexpr std::pair<const char*, std::int64_t JobTimes::*> kUses[] = {
      {"productive", &JobTimes::productive},
      {"queued", &JobTimes::queued},
      {"starting", &JobTimes::starting},
      {"recomputed", &JobTimes::recomputed},
      {"stalled", &JobTimes::stalled}};
  for (const auto& [use, member] : kUses) {
    const std::int64_t took = std::max<std::int64_t>(record.times_.*member - before.*member, 0);
    metrics_.count("trainer_job_time_seconds_total",
                   "Seconds of jobs whose ranks report, by what they were used for.",
                   {{"namespace", ns}, {"runtime", runtime}, {"use", use}},
                   static_cast<std::uint32_t>(std::min<std::int64_t>(took, 1U << 30)));
  }
}

}  // namespace trainer
