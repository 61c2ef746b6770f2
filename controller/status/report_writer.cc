#include "controller/status/report_writer.hh"

#include "api/trainjob.hh"
#include "kube/client/json_scan.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr const char* kManager = "trainer-status";
constexpr auto kIdle = std::chrono::seconds(60);
constexpr int kMaxTries = 4;

}  // namespace

ReportWriter::ReportWriter(kube::asio::io_context& io, kube::ApiClient& client, StatusLimits limits,
                           const kube::Log& log)
    : io_(io),
      client_(client),
      limits_(limits),
      log_(log),
      tasks_(io.get_executor(), [this](std::string_view task, std::string_view what) {
        log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
      }) {
  if (limits.qps && *limits.qps > 0) rate_limit_.emplace(*limits.qps, limits.burst.value_or(1));
}

Task<Result<void>> ReportWriter::submit(ObjectKey trainjob, std::string uid, Json trainer_status) {
  const SteadyTime now = client_.clock().steady();
  forget_idle(now);
  auto& slot = jobs_[uid];
  if (!slot) slot = std::make_shared<Job>(io_, std::move(trainjob), std::move(uid));
  const std::shared_ptr<Job> job = slot;
  job->waiting = std::move(trainer_status);
  const std::uint64_t number = ++job->submitted;
  if (!job->is_writer_running) {
    job->is_writer_running = tasks_.spawn("progress report", write_waiting(job));
    if (!job->is_writer_running)
      co_return kube::fail(kube::ErrorCode::kCancelled, "the process is ending");
  }
  const bool is_recent = job->written_at && now - *job->written_at < limits_.min_interval;
  if (is_recent && job->last) co_return Result<void>();
  // The write runs in its own task, so it is not cancelled when the client disconnects.
  while (job->written < number && job->is_writer_running) co_await job->write_done.wait();
  co_return job->last;
}

Task<void> ReportWriter::write_waiting(std::shared_ptr<Job> job) {
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
    job->last = co_await write(job, std::move(trainer_status));
    job->written_at = client_.clock().steady();
    job->written = number;
    job->write_done.notify();
    if (!job->last) {
      log_.info("progress report not written",
                {{"trainjob", job->key.to_string()}, {"why", job->last.error().message}});
    }
  }
}

// The API server ignores a uid in a configuration that is applied to a status
// (apiextensions-apiserver, statusStrategy.PrepareForUpdate), so the write is conditional on the
// version of that uid.
Task<Result<void>> ReportWriter::write(std::shared_ptr<Job> job, Json trainer_status) {
  co_await wait_for_rate_limit();
  Json status = Json::object();
  status.set("trainerStatus", std::move(trainer_status));
  for (int tries = 1;; ++tries) {
    if (job->resource_version.empty()) {
      if (auto read = co_await read_version(job); !read) co_return read;
    }
    Json metadata = Json::object();
    metadata.set("name", job->key.name)
        .set("namespace", job->key.ns)
        .set("resourceVersion", std::exchange(job->resource_version, ""));
    Json object = Json::object();
    object.set("apiVersion", kTrainJobs.api_version()).set("kind", kTrainJobs.kind);
    object.set("metadata", std::move(metadata)).set("status", status);
    const auto applied =
        co_await client_.apply(kTrainJobs, job->key, std::move(object), kManager, true, "status");
    if (applied) {
      job->resource_version = kube::scan_identity(*applied).version;
      co_return Result<void>();
    }
    // Another client has written in between.
    if (applied.error().code != kube::ErrorCode::kConflict || tries == kMaxTries)
      co_return tl::unexpected(applied.error());
  }
}

Task<Result<void>> ReportWriter::read_version(std::shared_ptr<Job> job) {
  const auto read = co_await client_.get(kTrainJobs, job->key);
  if (!read) co_return tl::unexpected(read.error());
  auto meta = kube::ObjectMeta::of(*read);
  if (meta.uid != job->uid)
    co_return kube::fail(kube::ErrorCode::kNotFound, "another TrainJob has this name now");
  job->resource_version = std::move(meta.resource_version);
  co_return Result<void>();
}

Task<void> ReportWriter::wait_for_rate_limit() {
  if (!rate_limit_ || is_flushing_) co_return;
  const SteadyTime now = client_.clock().steady();
  const SteadyTime slot = rate_limit_->take(now);
  if (slot > now) co_await kube::sleep(client_.clock(), slot - now);
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
