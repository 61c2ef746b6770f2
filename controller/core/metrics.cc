#include "controller/core/metrics.hh"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <cstdio>

namespace trainer {
namespace {

using Labels = std::map<std::string, std::string>;
using Seconds = std::chrono::duration<double>;

const prometheus::Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                       0.25,  0.5,    1,     2.5,  5,     10,   30};

// Resident bytes as the kernel counts them; 0 where /proc is not there.
double resident_bytes() {
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  if (!statm) return 0;
  long size = 0;
  long resident = 0;
  const int read = std::fscanf(statm, "%ld %ld", &size, &resident);
  std::fclose(statm);
  return read == 2 ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

struct Metrics::State {
  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& reconciles =
      counter("controller_runtime_reconcile_total", "Reconciles by controller and result.");
  prometheus::Family<prometheus::Counter>& errors = counter(
      "controller_runtime_reconcile_errors_total", "Reconciles that failed, by controller.");
  prometheus::Family<prometheus::Histogram>& reconcile_seconds = histogram(
      "controller_runtime_reconcile_time_seconds", "Time of a reconcile, waits included.");
  prometheus::Family<prometheus::Histogram>& queue_seconds =
      histogram("workqueue_queue_duration_seconds", "Time a key waited for a worker.");
  prometheus::Family<prometheus::Gauge>& queue_depth =
      gauge("workqueue_depth", "Keys that wait for a worker.");
  prometheus::Family<prometheus::Counter>& requests =
      counter("rest_client_requests_total",
              "Requests to the API server by verb, resource and status; code 0 is no answer.");
  prometheus::Family<prometheus::Histogram>& request_seconds = histogram(
      "rest_client_request_duration_seconds", "Time of a request to the API server, by verb.");
  prometheus::Family<prometheus::Counter>& watches =
      counter("trainer_watch_notes_total",
              "What happened to watches: list, watch, gone, malformed, error.");
  prometheus::Family<prometheus::Counter>& admissions = counter(
      "controller_runtime_webhook_requests_total", "Admission requests by webhook and answer.");
  prometheus::Family<prometheus::Histogram>& admission_seconds =
      histogram("controller_runtime_webhook_latency_seconds", "Time of an admission request.");
  prometheus::Family<prometheus::Counter>& stalls =
      counter("trainer_loop_stalls_total", "Steps of a control loop that took longer than 10 ms.");
  prometheus::Family<prometheus::Counter>& ends =
      counter("trainer_finished_total", "Objects that finished, by kind and result.");
  prometheus::Family<prometheus::Gauge>& leader =
      gauge("leader_election_master_status", "1 on the replica that runs the control loops.");
  prometheus::Family<prometheus::Gauge>& objects =
      gauge("trainer_store_objects", "Objects in the stores, by kind.");
  prometheus::Family<prometheus::Gauge>& events =
      gauge("trainer_events", "Events waiting to be sent, and dropped under load.");
  prometheus::Family<prometheus::Gauge>& memory =
      gauge("process_resident_memory_bytes", "Resident memory of this process.");
  std::function<void()> collect;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

void Metrics::reconciled(std::string_view controller, std::string_view result,
                         std::chrono::steady_clock::duration took) {
  const Labels by{{"controller", std::string(controller)}};
  state_->reconciles.Add({{"controller", std::string(controller)}, {"result", std::string(result)}})
      .Increment();
  if (result == "error") state_->errors.Add(by).Increment();
  state_->reconcile_seconds.Add(by, kSeconds).Observe(Seconds(took).count());
}

void Metrics::queued(std::string_view controller, std::chrono::steady_clock::duration waited) {
  state_->queue_seconds.Add({{"name", std::string(controller)}}, kSeconds)
      .Observe(Seconds(waited).count());
}

void Metrics::requested(const kube::RequestRecord& record) {
  std::string resource(record.resource);
  if (!record.subresource.empty()) resource += "/" + std::string(record.subresource);
  state_->requests
      .Add({{"method", std::string(record.method)},
            {"resource", std::move(resource)},
            {"code", std::to_string(record.status)}})
      .Increment();
  state_->request_seconds.Add({{"verb", std::string(record.method)}}, kSeconds)
      .Observe(Seconds(record.duration).count());
}

void Metrics::watched(std::string_view resource, std::string_view what) {
  state_->watches.Add({{"resource", std::string(resource)}, {"what", std::string(what)}})
      .Increment();
}

void Metrics::admitted(std::string_view webhook, bool is_allowed,
                       std::chrono::steady_clock::duration took) {
  const Labels by{{"webhook", std::string(webhook)}};
  state_->admissions.Add({{"webhook", std::string(webhook)}, {"code", is_allowed ? "200" : "403"}})
      .Increment();
  state_->admission_seconds.Add(by, kSeconds).Observe(Seconds(took).count());
}

void Metrics::loop_stalled(std::chrono::steady_clock::duration) {
  state_->stalls.Add({}).Increment();
}

void Metrics::finished(std::string_view kind, std::string_view result) {
  state_->ends.Add({{"kind", std::string(kind)}, {"result", std::string(result)}}).Increment();
}

void Metrics::set_leader(bool is_leader) {
  state_->leader.Add({{"name", "trainer.kubeflow.org"}}).Set(is_leader ? 1 : 0);
}

void Metrics::on_collect(std::function<void()> collect) {
  state_->collect = std::move(collect);
}

void Metrics::set_queue_depth(std::string_view controller, std::size_t depth) {
  state_->queue_depth.Add({{"name", std::string(controller)}}).Set(static_cast<double>(depth));
}

void Metrics::set_objects(std::string_view kind, std::size_t count) {
  state_->objects.Add({{"kind", std::string(kind)}}).Set(static_cast<double>(count));
}

void Metrics::set_events_pending(std::size_t pending, std::size_t dropped) {
  state_->events.Add({{"state", "pending"}}).Set(static_cast<double>(pending));
  state_->events.Add({{"state", "dropped"}}).Set(static_cast<double>(dropped));
}

std::string Metrics::render() {
  if (state_->collect) state_->collect();
  state_->memory.Add({}).Set(resident_bytes());
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace trainer
