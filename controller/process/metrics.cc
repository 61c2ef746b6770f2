#include "controller/process/metrics.hh"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/process/metric_families.hh"
#include "controller/process/process_figures.hh"

namespace trainer {
namespace {

using Seconds = std::chrono::duration<double>;

const prometheus::Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                       0.25,  0.5,    1,     2.5,  5,     10,   30};

// These are for jobs, which may wait in a queue for hours.
const prometheus::Histogram::BucketBoundaries kJobSeconds{
    0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14'400, 86'400};

// Raises a counter to a total that is counted elsewhere.
void raise_to(prometheus::Counter& counter, double total) {
  counter.Increment(total - counter.Value());
}

// Returns the review's result as a status code: over HTTP every answer to a review is 200.
const char* code_of(std::string_view outcome) {
  if (outcome == "allowed") return "200";
  return outcome == "denied" ? "403" : "500";
}

// These are a family's metrics by the values of its labels. The library's own lookup sorts and
// hashes names and values each time. Here the values alone are the key of a metric that exists
// already. Concurrency: any thread.
template <class T>
class Series {
 public:
  Series(prometheus::Family<T>& family, std::vector<std::string> names)
      : family_(family), names_(std::move(names)) {}

  // `values` are in the order of the names.
  T& of(std::initializer_list<std::string_view> values) {
    std::string key;
    for (const auto value : values) key.append(value).push_back('\0');
    const std::lock_guard lock(mutex_);
    auto& metric = known_[std::move(key)];
    if (!metric) metric = &add(values);
    return *metric;
  }

 private:
  T& add(std::initializer_list<std::string_view> values) {
    std::map<std::string, std::string> labels;
    auto name = names_.begin();
    for (const auto value : values) labels.emplace(*name++, value);
    if constexpr (std::is_same_v<T, prometheus::Histogram>) {
      return family_.Add(labels, kSeconds);
    } else {
      return family_.Add(labels);
    }
  }

  prometheus::Family<T>& family_;
  std::vector<std::string> names_;
  std::mutex mutex_;
  std::unordered_map<std::string, T*> known_;  // metrics are never removed
};

}  // namespace

struct Metrics::State {
  using Names = std::vector<std::string>;
  Series<prometheus::Counter> counter(const char* name, Names labels, const char* help) {
    return {prometheus::BuildCounter().Name(name).Help(help).Register(registry), std::move(labels)};
  }
  Series<prometheus::Gauge> gauge(const char* name, Names labels, const char* help) {
    return {prometheus::BuildGauge().Name(name).Help(help).Register(registry), std::move(labels)};
  }
  Series<prometheus::Histogram> histogram(const char* name, Names labels, const char* help) {
    return {prometheus::BuildHistogram().Name(name).Help(help).Register(registry),
            std::move(labels)};
  }

  // A queue has its controller's name; newer dashboards query the second label.
  inline static const Names kQueue{"name", "controller"};

  prometheus::Registry registry;
  Series<prometheus::Counter> reconciles =
      counter("controller_runtime_reconcile_total", {"controller", "result"},
              "Reconciles by controller and result.");
  Series<prometheus::Counter> errors =
      counter("controller_runtime_reconcile_errors_total", {"controller"},
              "Reconciles that failed, by controller.");
  Series<prometheus::Histogram> reconcile_seconds =
      histogram("controller_runtime_reconcile_time_seconds", {"controller"},
                "Time of a reconcile, waits included.");
  Series<prometheus::Histogram> queue_seconds =
      histogram("workqueue_queue_duration_seconds", kQueue, "Time a key waited for a worker.");
  Series<prometheus::Gauge> queue_depth =
      gauge("workqueue_depth", kQueue, "Keys that wait for a worker.");
  Series<prometheus::Counter> queue_adds =
      counter("workqueue_adds_total", kQueue, "Keys that were handed to the queue.");
  Series<prometheus::Counter> queue_retries = counter(
      "workqueue_retries_total", kQueue, "Keys that came back to the queue after a failure.");
  Series<prometheus::Gauge> unfinished =
      gauge("workqueue_unfinished_work_seconds", kQueue,
            "Time that keys which are worked on have taken so far, all together.");
  Series<prometheus::Gauge> longest =
      gauge("workqueue_longest_running_processor_seconds", kQueue,
            "The same of the key that has been worked on for longest.");
  Series<prometheus::Gauge> workers = gauge("controller_runtime_max_concurrent_reconciles",
                                            {"controller"}, "Workers of a controller.");
  Series<prometheus::Gauge> active_workers = gauge(
      "controller_runtime_active_workers", {"controller"}, "Workers that reconcile an object now.");
  Series<prometheus::Counter> panics =
      counter("controller_runtime_reconcile_panics_total", {"controller"},
              "Reconciles that ended by an exception, each a bug.");
  Series<prometheus::Counter> terminal_errors =
      counter("controller_runtime_terminal_reconcile_errors_total", {"controller"},
              "Errors after which a key is not tried again: there are none.");
  Series<prometheus::Counter> requests =
      counter("rest_client_requests_total", {"method", "resource", "code"},
              "Requests to the API server by verb, resource and status; code 0 is no answer.");
  Series<prometheus::Histogram> request_seconds =
      histogram("rest_client_request_duration_seconds", {"verb"},
                "Time of a request to the API server, by verb.");
  Series<prometheus::Counter> watches =
      counter("trainer_watch_notes_total", {"resource", "what"},
              "What happened to watches: list, watch, gone, malformed, unserved, error.");
  Series<prometheus::Gauge> watch_ages =
      gauge("trainer_watch_age_seconds", {"resource"},
            "Time since a watch brought anything; bookmarks come once a minute.");
  Series<prometheus::Counter> admissions = counter(
      "controller_runtime_webhook_requests_total", {"webhook", "code"},
      "Admission requests by webhook and answer: 200 allowed, 403 denied, 500 not evaluated.");
  Series<prometheus::Histogram> admission_seconds = histogram(
      "controller_runtime_webhook_latency_seconds", {"webhook"}, "Time of an admission request.");
  Series<prometheus::Gauge> admissions_in_flight =
      gauge("controller_runtime_webhook_requests_in_flight", {"webhook"},
            "Admission requests that are evaluated now.");
  Series<prometheus::Counter> admission_panics =
      counter("controller_runtime_webhook_panics_total", {},
              "Admission requests that ended by an exception, each a bug.");
  Series<prometheus::Counter> serving_exceptions =
      counter("trainer_serving_exceptions_total", {},
              "Exceptions on the thread that answers requests, each a bug.");
  Series<prometheus::Counter> certificate_reads =
      counter("certwatcher_read_certificate_total", {}, "Certificates that were read and used.");
  Series<prometheus::Counter> certificate_errors = counter(
      "certwatcher_read_certificate_errors_total", {}, "Certificates that could not be used.");
  Series<prometheus::Gauge> certificate_expiries =
      gauge("trainer_certificate_expiry_timestamp_seconds", {"certificate"},
            "When the certificate of the servers, or of their CA, ends.");
  Series<prometheus::Gauge> build =
      gauge("trainer_build_info", {"version", "compiler"}, "1, by the version of the program.");
  Series<prometheus::Counter> stalls = counter("trainer_loop_stalls_total", {"loop"},
                                               "Steps of a thread that took longer than 10 ms.");
  Series<prometheus::Histogram> lags =
      histogram("trainer_loop_lag_seconds", {"loop"},
                "How late a loop was: the control loops' thread, and the serving thread.");
  Series<prometheus::Counter> evictions =
      counter("trainer_connections_evicted_total", {"server"},
              "Connections that were closed to make room for those of others, by server.");
  Series<prometheus::Counter> ends = counter("trainer_finished_total", {"kind", "result"},
                                             "Objects that finished, by kind and result.");
  Series<prometheus::Counter> refused_statuses =
      counter("trainer_status_refused_total", {"kind", "code"},
              "Statuses that the API server refused, by kind and HTTP status.");
  Series<prometheus::Gauge> leader = gauge("leader_election_master_status", {"name"},
                                           "1 on the replica that runs the control loops.");
  Series<prometheus::Gauge> unexpected_leases =
      gauge("trainer_unexpected_leases", {"name"},
            "Leases of this name that are held in namespaces where none is expected.");
  Series<prometheus::Gauge> objects =
      gauge("trainer_store_objects", {"kind"}, "Objects in the caches, by kind.");
  Series<prometheus::Gauge> events =
      gauge("trainer_events", {"state"}, "Events waiting to be sent, and dropped under load.");
  Series<prometheus::Gauge> resident_memory =
      gauge("process_resident_memory_bytes", {}, "Resident memory of this process.");
  Series<prometheus::Gauge> memory_limit =
      gauge("trainer_memory_limit_bytes", {}, "How much memory this container may use.");
  Series<prometheus::Gauge> virtual_memory =
      gauge("process_virtual_memory_bytes", {}, "Virtual memory of this process.");
  Series<prometheus::Gauge> start_time =
      gauge("process_start_time_seconds", {}, "When this process began, since 1970.");
  Series<prometheus::Gauge> descriptors =
      gauge("process_open_fds", {}, "Open file descriptors of this process.");
  Series<prometheus::Gauge> max_descriptors =
      gauge("process_max_fds", {}, "How many file descriptors this process may open.");
  Series<prometheus::Counter> cpu =
      counter("process_cpu_seconds_total", {}, "User and system CPU time of this process.");
  std::function<void()> collect;
  std::shared_ptr<const JobCensus> jobs;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  state_->build.of({TRAINER_VERSION, __VERSION__}).Set(1);
  state_->certificate_errors.of({});
  state_->serving_exceptions.of({});
  state_->admission_panics.of({});
}
Metrics::~Metrics() = default;

void Metrics::reconciled(std::string_view controller, std::string_view result,
                         std::chrono::steady_clock::duration took) {
  state_->reconciles.of({controller, result}).Increment();
  if (result == "error") state_->errors.of({controller}).Increment();
  state_->reconcile_seconds.of({controller}).Observe(Seconds(took).count());
}

void Metrics::panicked(std::string_view controller) {
  state_->panics.of({controller}).Increment();
}

void Metrics::queued(std::string_view controller, std::chrono::steady_clock::duration waited) {
  state_->queue_seconds.of({controller, controller}).Observe(Seconds(waited).count());
}

void Metrics::requested(const kube::RequestRecord& record) {
  std::string resource(record.resource);
  if (!record.subresource.empty()) resource.append("/").append(record.subresource);
  state_->requests.of({record.method, resource, std::to_string(record.status)}).Increment();
  state_->request_seconds.of({record.method}).Observe(Seconds(record.duration).count());
}

void Metrics::watched(std::string_view resource, std::string_view what) {
  state_->watches.of({resource, what}).Increment();
}

void Metrics::review_began(std::string_view webhook) {
  state_->admissions_in_flight.of({webhook}).Increment();
}

void Metrics::admitted(std::string_view webhook, std::string_view outcome,
                       std::chrono::steady_clock::duration took) {
  state_->admissions_in_flight.of({webhook}).Decrement();
  if (outcome == "panic") state_->admission_panics.of({}).Increment();
  state_->admissions.of({webhook, code_of(outcome)}).Increment();
  state_->admission_seconds.of({webhook}).Observe(Seconds(took).count());
}

void Metrics::serving_failed() {
  state_->serving_exceptions.of({}).Increment();
}

void Metrics::certificates_read(bool are_used) {
  (are_used ? state_->certificate_reads : state_->certificate_errors).of({}).Increment();
}

void Metrics::set_certificate_expiry(std::string_view certificate, kube::Time expiry) {
  state_->certificate_expiries.of({certificate}).Set(static_cast<double>(expiry.seconds()));
}

void Metrics::loop_stalled(std::string_view loop) {
  state_->stalls.of({loop}).Increment();
}

void Metrics::loop_lagged(std::string_view loop, std::chrono::steady_clock::duration lag) {
  state_->lags.of({loop}).Observe(Seconds(lag).count());
}

void Metrics::connection_evicted(std::string_view server) {
  state_->evictions.of({server}).Increment();
}

void Metrics::set_unexpected_leases(std::string_view name, std::size_t count) {
  state_->unexpected_leases.of({name}).Set(static_cast<double>(count));
}

void Metrics::finished(std::string_view kind, std::string_view result, std::uint32_t by) {
  state_->ends.of({kind, result}).Increment(by);
}

// Register() returns the existing family of this name.
void Metrics::count(const std::string& name, const std::string& help, const Labels& labels,
                    std::uint32_t by) {
  prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Register(state_->registry)
      .Add({labels.begin(), labels.end()})
      .Increment(by);
}

void Metrics::observe(const std::string& name, const std::string& help, const Labels& labels,
                      std::optional<std::chrono::duration<double>> took) {
  auto& histogram = prometheus::BuildHistogram()
                        .Name(name)
                        .Help(help)
                        .Register(state_->registry)
                        .Add({labels.begin(), labels.end()}, kJobSeconds);
  if (took) histogram.Observe(took->count());
}

void Metrics::status_refused(std::string_view kind, int http_status) {
  state_->refused_statuses.of({kind, std::to_string(http_status)}).Increment();
}

void Metrics::set_leader(std::string_view lease, bool is_leader) {
  state_->leader.of({lease}).Set(is_leader ? 1 : 0);
}

void Metrics::on_collect(std::function<void()> collect) {
  state_->collect = std::move(collect);
}

void Metrics::set_jobs(std::shared_ptr<const JobCensus> jobs) {
  state_->jobs = std::move(jobs);
}

void Metrics::set_queue(std::string_view controller, const QueueFigures& figures) {
  state_->queue_depth.of({controller, controller}).Set(static_cast<double>(figures.depth));
  raise_to(state_->queue_adds.of({controller, controller}), static_cast<double>(figures.adds));
  raise_to(state_->queue_retries.of({controller, controller}),
           static_cast<double>(figures.retries));
  state_->unfinished.of({controller, controller}).Set(figures.unfinished_seconds);
  state_->longest.of({controller, controller}).Set(figures.longest_seconds);
  state_->workers.of({controller}).Set(static_cast<double>(figures.workers));
  state_->active_workers.of({controller}).Set(static_cast<double>(figures.active));
  // They exist from the start: otherwise an alert on their increase would miss the first.
  for (auto* const errors : {&state_->errors, &state_->panics, &state_->terminal_errors})
    errors->of({controller});
}

void Metrics::set_objects(std::string_view kind, std::size_t count) {
  state_->objects.of({kind}).Set(static_cast<double>(count));
}

void Metrics::set_watch_age(std::string_view resource, std::chrono::steady_clock::duration age) {
  state_->watch_ages.of({resource}).Set(Seconds(age).count());
}

void Metrics::set_events_pending(std::size_t pending, std::size_t dropped) {
  state_->events.of({"pending"}).Set(static_cast<double>(pending));
  state_->events.of({"dropped"}).Set(static_cast<double>(dropped));
}

std::string Metrics::render() {
  if (state_->collect) state_->collect();
  const ProcessFigures process = read_process_figures();
  state_->resident_memory.of({}).Set(process.resident_bytes);
  if (process.memory_limit_bytes > 0) state_->memory_limit.of({}).Set(process.memory_limit_bytes);
  state_->virtual_memory.of({}).Set(process.virtual_bytes);
  state_->start_time.of({}).Set(process.start_seconds);
  state_->descriptors.of({}).Set(process.open_descriptors);
  state_->max_descriptors.of({}).Set(process.max_descriptors);
  raise_to(state_->cpu.of({}), process.cpu_seconds);
  MetricFamilies families = state_->registry.Collect();
  add_work_durations(families);
  if (state_->jobs) add_jobs(families, *state_->jobs);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace trainer
