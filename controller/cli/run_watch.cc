#include "controller/cli/run_watch.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <utility>

#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/code_change.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::chrono::milliseconds kPodPoll{300};
constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kRetryPause{1'000};

}  // namespace

RunWatch::RunWatch(kube::asio::io_context& io, kube::ApiClient& client, std::string folder,
                   SentCode code, Say say)
    : io_(io),
      client_(client),
      folder_(std::move(folder)),
      code_(std::move(code)),
      say_(std::move(say)),
      watcher_(io, client.clock(), say_) {}

Result<void> RunWatch::begin() {
  return watcher_.begin(folder_, code_.entries);
}

Task<void> RunWatch::follow(kube::ObjectKey job, std::string uid, std::string_view pod_label) {
  job_ = std::move(job);
  uid_ = std::move(uid);
  pod_label_ = pod_label;
  config_maps_ = code_.parts.size();
  needs_new_job_ = false;
  for (;;) {
    auto edit = co_await watcher_.next();
    if (!edit) {
      say_(edit.error().message + ": edits are no longer seen");
      co_return;
    }
    auto parts = pack_code(edit->entries, folder_);
    if (!parts) {
      say_(parts.error().message);
      continue;
    }
    SentCode next{edit->entries, std::move(*parts)};
    const std::string change = change_text(edit->changed);
    const std::string why = co_await bring(change, next);
    if (is_job_another_) {
      say_(fmt::format("TrainJob {} is another one now: edits are no longer seen",
                       job_.to_string()));
      co_return;
    }
    code_ = std::move(next);
    if (why.empty()) continue;
    say_(fmt::format("code: {}: {}, so the job begins again as a new one", change, why));
    needs_new_job_ = true;
    co_return;
  }
}

Task<std::string> RunWatch::bring(std::string change, SentCode next) {
  if (!obstacle_.empty()) co_return obstacle_;
  for (int attempt = 1;; ++attempt) {
    const auto why = co_await try_to_bring(change, next);
    if (why) co_return *why;
    const kube::Error& error = why.error();
    // A pod may end between its list and the command in it.
    const bool may_pass = error.is_transient() || error.code == ErrorCode::kNotFound;
    if (!may_pass || attempt == kAttempts) co_return error.message;
    co_await kube::sleep(client_.clock(), kRetryPause);
  }
}

Task<Result<std::string>> RunWatch::try_to_bring(const std::string& change, const SentCode& next) {
  const auto job = co_await client_.get(kTrainJobs, job_);
  if (!job) co_return tl::unexpected(job.error());
  is_job_another_ = kube::ObjectMeta::of(*job).uid != uid_;
  if (is_job_another_) co_return "";
  if (kube::has_condition(*job, "Complete") || kube::has_condition(*job, "Failed"))
    co_return "the job has ended";
  if (next.parts.size() > config_maps_) co_return "the code needs more ConfigMaps";
  // A pod that is made later has the new code.
  if (auto replaced = co_await replace_config_maps(next.parts); !replaced)
    co_return tl::unexpected(std::move(replaced.error()));
  auto targets = co_await find_pods(change);
  if (!targets) co_return tl::unexpected(targets.error());
  if (!targets->obstacle.empty()) co_return targets->obstacle;
  if (targets->running.empty()) {
    say_(fmt::format("code: {}: the pods will start with it", change));
    co_return "";
  }
  say_(fmt::format("code: {}; restarting in place in {}", change,
                   count_of(std::ssize(targets->running), "pod")));
  // A command that has begun with a round waits for another one.
  std::string script = apply_script(code_.entries, next.entries, ++round_);
  const auto done =
      co_await push_code(io_, client_, std::move(targets->running),
                         fmt::format("{}", fmt::join(next.parts, "")), std::move(script));
  if (done) co_return "";
  if (done.error().code != ErrorCode::kForbidden) co_return tl::unexpected(done.error());
  obstacle_ = fmt::format(
      "you may not run commands in pods (get and create pods/exec in namespace {}: ask its admin "
      "for the role edit)",
      job_.ns);
  co_return obstacle_;
}

Task<Result<void>> RunWatch::replace_config_maps(const std::vector<std::string>& parts) {
  const auto objects = code_config_maps(job_, parts);
  const auto names = code_names(job_.name, config_maps_);
  for (std::size_t i = 0; i < config_maps_; ++i) {
    Json patch;
    if (i < objects.size())
      patch.set("binaryData", objects[i].get("binaryData"));
    else
      patch.set("binaryData", Json());
    kube::ObjectKey key{job_.ns, names[i]};
    const std::string title = "ConfigMap " + names[i];
    const auto done =
        co_await client_.merge_patch(kube::kConfigMaps, std::move(key), std::move(patch));
    if (!done) co_return tl::unexpected(done.error().at(title));
  }
  co_return Result<void>();
}

Task<Result<PushTargets>> RunWatch::find_pods(const std::string& change) {
  for (bool is_said = false;;) {
    const auto pods =
        co_await list_all(client_, kube::kPods, job_.ns, label_query(pod_label_, job_.name));
    if (!pods) co_return tl::unexpected(pods.error());
    PushTargets targets = push_targets(*pods);
    if (!targets.is_starting || !targets.obstacle.empty()) co_return targets;
    if (!std::exchange(is_said, true))
      say_(fmt::format("code: {}; waiting for pods that start", change));
    co_await kube::sleep(client_.clock(), kPodPoll);
  }
}

}  // namespace trainer
