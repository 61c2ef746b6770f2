#include "controller/cli/local_jobs.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/documents.hh"
#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/jobset/names.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::ObjectKey;
using kube::Resource;
using kube::Result;
using kube::Task;

constexpr const char* kManager = "trainer-local";
constexpr kube::Milliseconds kPoll{20};
constexpr std::chrono::seconds kLongestDeletion{60};
constexpr std::chrono::seconds kAfterGrace{30};       // until a killed pod has been seen to end
constexpr std::chrono::seconds kWaitWithoutAWord{2};  // most pods have ended by then

Task<Result<std::vector<Json>>> list_pods(kube::ApiClient& client, ObjectKey key) {
  std::string selector = label_query(jobset::kJobSetNameKey, key.name);
  return list_all(client, kube::kPods, key.ns, std::move(selector));
}

// Returns the longest grace period of those that still run. nullopt says that none runs.
std::optional<std::chrono::seconds> longest_grace(const std::vector<Json>& pods) {
  std::optional<std::chrono::seconds> longest;
  for (const Json& pod : pods) {
    if (kube::is_pod_over(pod)) continue;
    const std::chrono::seconds grace(
        pod.get("metadata").get_int("deletionGracePeriodSeconds", kube::termination_grace(pod)));
    longest = std::max(longest.value_or(grace), grace);
  }
  return longest;
}

}  // namespace

Task<Result<void>> create_missing_runtimes(kube::ApiClient& client) {
  const auto found = co_await list_all(client, kClusterTrainingRuntimes, "", "");
  if (!found) co_return tl::unexpected(found.error());
  std::set<std::string, std::less<>> names;
  for (const Json& runtime : *found) names.insert(kube::ObjectMeta::of(runtime).name);
  for (const Json& runtime : builtin_runtimes()) {
    if (names.contains(kube::ObjectMeta::of(runtime).name)) continue;
    const auto made = co_await client.create(kClusterTrainingRuntimes, runtime, kManager);
    // Another command may have been first.
    if (!made && made.error().code != ErrorCode::kAlreadyExists)
      co_return tl::unexpected(made.error());
  }
  co_return Result<void>();
}

std::optional<Resource> find_local_resource(const Registry& registry, const Json& object) {
  std::vector<Resource> all{kube::kNamespaces,     kube::kConfigMaps, kube::kSecrets,
                            kube::kServices,       kube::kJobs,       kube::kPersistentVolumeClaims,
                            kube::kServiceAccounts};
  for (const KindRegistration& registration : registry)
    if (registration.option.empty())
      for (const ApiKind& kind : registration.crds) all.push_back(kind.resource);
  for (const Resource& resource : all) {
    if (object.get_string("kind") == resource.kind &&
        object.get_string("apiVersion") == resource.api_version())
      return resource;
  }
  return std::nullopt;
}

Task<Result<Json>> get_runtime_of(kube::ApiClient& client, Json job) {
  const Json& ref = job.get("spec").get("runtimeRef");
  const bool is_namespaced = ref.get_string("kind") == kTrainingRuntimes.kind;
  Resource resource = is_namespaced ? kTrainingRuntimes : kClusterTrainingRuntimes;
  ObjectKey key{is_namespaced ? kube::ObjectMeta::of(job).ns : "",
                std::string(ref.get_string("name"))};
  const std::string title = resource.kind + " " + key.to_string();
  auto runtime = co_await client.get(std::move(resource), std::move(key));
  if (!runtime && runtime.error().code == ErrorCode::kNotFound) {
    co_return kube::fail(ErrorCode::kNotFound,
                         "spec.runtimeRef: there is no {}: name one of the file, or one that "
                         "`trainer runtimes --list` shows",
                         title);
  }
  co_return runtime;
}

bool is_running(const Json& job) {
  const bool is_suspended =
      job.get("spec").get_bool("suspend") && job.get("status").get_string("phase") == "Suspended";
  return !is_suspended && !is_finished(job);
}

Task<Result<void>> check_job_may_run(kube::ApiClient& client, ObjectKey key) {
  const auto job = co_await client.get(kTrainJobs, key);
  if (job && is_running(*job)) {
    co_return kube::fail(ErrorCode::kConflict,
                         "a job of this name runs: `trainer local logs -f {0} -n {1}` shows it, "
                         "`trainer local stop {0} -n {1}` ends it",
                         key.name, key.ns);
  }
  if (!job && job.error().code != ErrorCode::kNotFound) co_return tl::unexpected(job.error());
  co_return Result<void>();
}

Task<Result<void>> delete_job(kube::ApiClient& client, ObjectKey key) {
  kube::DeleteOptions options;
  options.propagation = "Foreground";
  const auto removed = co_await client.remove(kTrainJobs, key, options);
  if (!removed && removed.error().code != ErrorCode::kNotFound)
    co_return tl::unexpected(removed.error());
  for (const auto end = client.clock().steady() + kLongestDeletion;
       client.clock().steady() < end;) {
    const auto job = co_await client.get(kTrainJobs, key);
    if (!job && job.error().code == ErrorCode::kNotFound) co_return Result<void>();
    if (!job) co_return tl::unexpected(job.error());
    co_await kube::sleep(client.clock(), kPoll);
  }
  co_return kube::fail(ErrorCode::kTimeout,
                       "the job of this name from before is not deleted within {} s: `kubectl get "
                       "trainjob,jobset,job,pod -n {}` shows what is left of it",
                       kLongestDeletion.count(), key.ns);
}

Task<Result<ObjectKey>> create_job(kube::ApiClient& client, Json job) {
  const auto made = co_await client.create(kTrainJobs, std::move(job), kManager);
  if (!made) co_return tl::unexpected(made.error());
  const auto object = kube::parse_json(*made);
  if (!object) co_return tl::unexpected(object.error());
  co_return kube::ObjectMeta::of(*object).key();
}

Task<Result<void>> suspend_job(kube::ApiClient& client, ObjectKey key) {
  const auto job = co_await client.get(kTrainJobs, key);
  if (!job) co_return tl::unexpected(job.error());
  if (!is_running(*job)) co_return Result<void>();
  Json patch;
  patch["spec"].set("suspend", true);
  const auto done = co_await client.merge_patch(kTrainJobs, std::move(key), std::move(patch));
  if (!done) co_return tl::unexpected(done.error());
  co_return Result<void>();
}

Task<Result<void>> kill_pods(kube::ApiClient& client, ObjectKey key) {
  const auto pods = co_await list_pods(client, std::move(key));
  if (!pods) co_return tl::unexpected(pods.error());
  kube::DeleteOptions options;
  options.grace_seconds = 0;
  for (const Json& pod : *pods) {
    const auto removed =
        co_await client.remove(kube::kPods, kube::ObjectMeta::of(pod).key(), options);
    if (!removed && removed.error().code != ErrorCode::kNotFound)
      co_return tl::unexpected(removed.error());
  }
  co_return Result<void>();
}

Task<Result<bool>> has_running_pods(kube::ApiClient& client, ObjectKey key) {
  const auto pods = co_await list_pods(client, std::move(key));
  if (!pods) co_return tl::unexpected(pods.error());
  // A job that was about to end when it was suspended keeps its pods.
  co_return !std::all_of(pods->begin(), pods->end(), kube::is_pod_over);
}

Task<Result<void>> wait_until_pods_end(kube::ApiClient& client, ObjectKey key, Say say) {
  bool is_said = false;
  for (const auto begin = client.clock().steady();;) {
    const auto pods = co_await list_pods(client, key);
    if (!pods) co_return tl::unexpected(pods.error());
    const auto grace = longest_grace(*pods);
    if (!grace) co_return Result<void>();
    const auto waited = client.clock().steady() - begin;
    if (waited > *grace + kAfterGrace) {
      co_return kube::fail(kube::ErrorCode::kTimeout,
                           "its pods have not ended within {} s: `trainer local stop --kill {} -n "
                           "{}` gives them no more time",
                           (*grace + kAfterGrace).count(), key.name, key.ns);
    }
    if (waited > kWaitWithoutAWord && !std::exchange(is_said, true))
      say(fmt::format("TrainJob {}: its pods have {} s to end: waiting for them", key.to_string(),
                      grace->count()));
    co_await kube::sleep(client.clock(), kPoll);
  }
}

Task<Result<void>> stop_jobs(kube::ApiClient& client, std::vector<ObjectKey> jobs, bool is_killed,
                             Say say) {
  Result<void> result;
  // A job that is gone cannot be suspended, and its pods may still end. An error of one job does
  // not keep another one running.
  const auto note = [&result](const ObjectKey& job, const Result<void>& done) {
    const bool is_gone = !done && done.error().code == ErrorCode::kNotFound;
    if (!done && !is_gone && result)
      result = tl::unexpected(done.error().at("TrainJob " + job.to_string()));
  };
  for (const ObjectKey& job : jobs) {
    auto done = co_await suspend_job(client, job);
    if (done && is_killed) done = co_await kill_pods(client, job);
    note(job, done);
  }
  for (const ObjectKey& job : jobs) note(job, co_await wait_until_pods_end(client, job, say));
  co_return result;
}

Task<Result<std::vector<Json>>> list_jobs(kube::ApiClient& client) {
  return list_all(client, kTrainJobs, "", "");
}

}  // namespace trainer
