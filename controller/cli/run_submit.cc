#include "controller/cli/run_submit.hh"

#include <fmt/format.h>

#include <utility>

#include "api/trainjob.hh"
#include "controller/cli/documents.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

constexpr const char* kRunManager = "trainer-run";
constexpr std::chrono::milliseconds kDeletionPoll{200};
constexpr std::chrono::minutes kLongestEnd{5};

kube::Error explain(const kube::Error& error, const ObjectKey& job) {
  kube::Error said = error.at("TrainJob " + job.to_string());
  if (error.code == ErrorCode::kAlreadyExists)
    said.message = fmt::format(
        "TrainJob {0}: there is one of this name: choose another --name, or delete it with "
        "`kubectl delete trainjob {1} -n {2}`",
        job.to_string(), job.name, job.ns);
  if (error.code == ErrorCode::kTimeout || error.code == ErrorCode::kNetwork)
    said.message += fmt::format(
        ": it may exist all the same, without its code: `kubectl delete trainjob {} -n {}` "
        "deletes it",
        job.name, job.ns);
  if (error.code == ErrorCode::kForbidden)
    said.message += fmt::format(
        ": choose a namespace of yours with -n, or ask its admin for the role edit in {}", job.ns);
  return said;
}

Task<Result<void>> add_code(kube::ApiClient& client, Json config_map, const SubmittedRun& run) {
  kube::OwnerReference owner;
  owner.api_version = kTrainJobs.api_version();
  owner.kind = kTrainJobs.kind;
  owner.name = run.job.name;
  owner.uid = run.uid;
  config_map["metadata"].set("ownerReferences", Json::array({owner.to_json()}));
  const auto made = co_await client.create(kube::kConfigMaps, std::move(config_map), kRunManager);
  if (!made) co_return tl::unexpected(made.error());
  co_return Result<void>();
}

}  // namespace

// The job is created first and owns the ConfigMaps, so that they are deleted with it, however this
// ends. Its pods wait for them, which takes no longer than the first pod needs to start. A job that
// is created suspended would do the same, but a queue may admit it at any time, and to resume it is
// the queue's business.
Task<Result<SubmittedRun>> submit_run(kube::ApiClient& client, RunObjects objects,
                                      std::function<void(std::string_view)> say) {
  SubmittedRun run;
  run.job = kube::ObjectMeta::of(objects.job).key();
  const auto created = co_await client.create(kTrainJobs, std::move(objects.job), kRunManager);
  if (!created) co_return tl::unexpected(explain(created.error(), run.job));
  const auto object = kube::parse_json(*created);
  const kube::ObjectMeta meta = object ? kube::ObjectMeta::of(*object) : kube::ObjectMeta();
  run.uid = meta.uid;
  // Kueue sets the label, too, where a namespace has a default queue.
  run.is_queued = meta.labels.contains(kQueueLabel);
  for (Json& config_map : objects.config_maps) {
    const std::string title = title_of(config_map);
    const auto done = co_await add_code(client, std::move(config_map), run);
    if (done) continue;
    kube::DeleteOptions options;
    options.propagation = "Background";
    options.uid = run.uid;
    const auto removed = co_await client.remove(kTrainJobs, run.job, options);
    if (!removed)
      say(fmt::format("the job stays: `kubectl delete trainjob {} -n {}` deletes it", run.job.name,
                      run.job.ns));
    kube::Error said = done.error().at(title);
    if (said.code == ErrorCode::kAlreadyExists)
      said.message += ": it is of an earlier job: delete it, or choose another --name";
    co_return tl::unexpected(said);
  }
  co_return run;
}

// The collector deletes the ConfigMaps some time after the job, when those of the next job would
// have their names.
Task<Result<void>> delete_run(kube::ApiClient& client, SubmittedRun run,
                              std::vector<std::string> config_maps) {
  kube::DeleteOptions options;
  options.propagation = "Foreground";
  options.uid = run.uid;
  const std::string title = "TrainJob " + run.job.to_string();
  const auto removed = co_await client.remove(kTrainJobs, run.job, options);
  if (!removed && removed.error().code != ErrorCode::kNotFound)
    co_return tl::unexpected(removed.error().at(title));
  const auto end = client.clock().steady() + kLongestEnd;
  for (;;) {
    const auto job = co_await client.get(kTrainJobs, run.job);
    if (!job && job.error().code == ErrorCode::kNotFound) break;
    if (!job) co_return tl::unexpected(job.error().at(title));
    if (client.clock().steady() >= end)
      co_return kube::fail(ErrorCode::kTimeout,
                           "{}: it is not deleted within {} minutes: `kubectl get "
                           "trainjob,jobset,job,pod -n {}` shows what is left of it",
                           title, kLongestEnd.count(), run.job.ns);
    co_await kube::sleep(client.clock(), kDeletionPoll);
  }
  for (const std::string& name : config_maps) {
    const ObjectKey key{run.job.ns, name};
    const auto gone = co_await client.remove(kube::kConfigMaps, key, kube::DeleteOptions());
    if (!gone && gone.error().code != ErrorCode::kNotFound)
      co_return tl::unexpected(gone.error().at("ConfigMap " + key.to_string()));
  }
  co_return Result<void>();
}

}  // namespace trainer
