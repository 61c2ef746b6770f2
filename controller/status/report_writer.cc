#include "controller/status/report_writer.hh"

#include <algorithm>

#include "api/trainjob.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr const char* kManager = "trainer-status";
constexpr auto kIdle = std::chrono::seconds(60);

}  // namespace

ReportWriter::ReportWriter(kube::asio::io_context& io, kube::ApiClient& client, StatusLimits limits,
                           const kube::Log& log)
    : io_(io),
      client_(client),
      limits_(limits),
      log_(log),
      tasks_(io.get_executor(), [this](std::string_view task, std::string_view what) {
        log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
      }) {}

Task<Result<void>> ReportWriter::submit(ObjectKey trainjob, Json trainer_status) {
  const SteadyTime now = client_.clock().steady();
  forget_idle(now);
  auto& slot = jobs_[trainjob];
  if (!slot) slot = std::make_shared<Job>(io_);
  const std::shared_ptr<Job> job = slot;
  job->waiting = std::move(trainer_status);
  const std::uint64_t number = ++job->submitted;
  if (!job->is_writer_running) {
    job->is_writer_running = tasks_.spawn("progress report", write_waiting(trainjob, job));
    if (!job->is_writer_running)
      co_return kube::fail(kube::ErrorCode::kCancelled, "the process is ending");
  }
  const bool is_recent = job->written_at && now - *job->written_at < limits_.min_interval;
  if (is_recent && job->last) co_return Result<void>();
  // The write runs in its own task, so it is not cancelled when the client disconnects.
  while (job->written < number && job->is_writer_running) co_await job->write_done.wait();
  co_return job->last;
}

Task<void> ReportWriter::write_waiting(ObjectKey trainjob, std::shared_ptr<Job> job) {
  const std::shared_ptr<void> end(nullptr, [job](void*) {
    job->is_writer_running = false;
    job->write_done.notify();
  });
  while (job->waiting) {
    if (job->written_at && job->last && !is_flushing_) {
      co_await job->pause.wait_until(client_.clock(), *job->written_at + limits_.min_interval);
    }
    Json trainer_status = std::move(*job->waiting);
    job->waiting.reset();
    const std::uint64_t number = job->submitted;
    job->last = co_await write(trainjob, std::move(trainer_status));
    job->written_at = client_.clock().steady();
    job->written = number;
    job->write_done.notify();
    if (!job->last) {
      log_.info("progress report not written",
                {{"trainjob", trainjob.to_string()}, {"why", job->last.error().message}});
    }
  }
}

Task<Result<void>> ReportWriter::write(ObjectKey trainjob, Json trainer_status) {
  co_await wait_for_rate_limit();
  Json metadata = Json::object();
  metadata.set("name", trainjob.name).set("namespace", trainjob.ns);
  Json status = Json::object();
  status.set("trainerStatus", std::move(trainer_status));
  Json object = Json::object();
  object.set("apiVersion", kTrainJobs.api_version()).set("kind", kTrainJobs.kind);
  object.set("metadata", std::move(metadata)).set("status", std::move(status));
  const auto applied =
      co_await client_.apply(kTrainJobs, trainjob, std::move(object), kManager, true, "status");
  if (!applied) co_return tl::unexpected(applied.error());
  co_return Result<void>();
}

// A token bucket: each write takes the next free time slot; after a pause `burst` slots are free.
Task<void> ReportWriter::wait_for_rate_limit() {
  if (!limits_.qps || *limits_.qps <= 0 || is_flushing_) co_return;
  const auto step = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(1 / *limits_.qps));
  const SteadyTime now = client_.clock().steady();
  next_write_ = std::max(next_write_, now - step * std::max(0, limits_.burst.value_or(1) - 1));
  const SteadyTime slot = next_write_;
  next_write_ += step;
  if (slot <= now) co_return;
  co_await kube::sleep(client_.clock(), slot - now);
}

void ReportWriter::forget_idle(SteadyTime now) {
  if (now < next_sweep_) return;
  next_sweep_ = now + kIdle;
  std::erase_if(jobs_, [&](const auto& entry) {
    const Job& job = *entry.second;
    return !job.is_writer_running && (!job.written_at || now - *job.written_at > kIdle);
  });
}

Task<void> ReportWriter::flush() {
  is_flushing_ = true;
  for (const auto& [key, job] : jobs_) job->pause.notify();
  co_await tasks_.join();
}

}  // namespace trainer
