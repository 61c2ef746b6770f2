#include "controller/cli/read_queue.hh"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "controller/cli/cluster.hh"
#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using fit::KueueState;
using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::string_view kGroup = "kueue.x-k8s.io";
constexpr std::string_view kPriorityLabel = "kueue.x-k8s.io/priority-class";
constexpr const char* kVersions[] = {"v1beta2", "v1beta1"};
constexpr std::size_t kMaxPending = 16U << 20;  // bytes of an answer of the visibility API
constexpr std::size_t kPage = 1'000;            // workloads of one of them, as by default
constexpr std::size_t kMaxPages = 20;
constexpr kube::Milliseconds kLongestSilence{5'000};

// Returns whether the object does not exist, and not its kind or the version: those the server does
// not name.
bool is_missing(const kube::Error& error) {
  return error.code == ErrorCode::kNotFound &&
         error.message.find("\" not found") != error.message.npos;
}

// Returns an object of Kueue in the first version that is served.
Task<Result<Json>> get_of_kueue(kube::ApiClient& client, std::string plural, std::string kind,
                                kube::ObjectKey key) {
  Result<Json> found = Json();
  for (const char* version : kVersions) {
    kube::Resource resource{std::string(kGroup), version, plural, kind, !key.ns.empty()};
    found = co_await client.get(std::move(resource), key);
    if (found || found.error().code != ErrorCode::kNotFound || is_missing(found.error())) break;
  }
  co_return found;
}

// Calls `on_object` with each object of a kind of Kueue; in all namespaces if `ns` is empty. After
// an error they are not all.
Task<Result<void>> list_of_kueue(kube::ApiClient& client, std::string plural, std::string kind,
                                 std::string ns, std::function<void(const Json&)> on_object) {
  Result<void> done;
  for (const char* version : kVersions) {
    kube::Resource resource{std::string(kGroup), version, plural, kind, true};
    std::function<void(std::string_view)> on_item = [&on_object](std::string_view text) {
      if (const auto object = kube::parse_json(text)) on_object(*object);
    };
    const auto listed = co_await client.list(std::move(resource), ns, "", std::move(on_item));
    if (listed) co_return Result<void>();
    done = tl::unexpected(listed.error());
    if (listed.error().code != ErrorCode::kNotFound) break;
  }
  co_return done;
}

std::string reason_unread(const kube::Error& error) {
  if (error.code == ErrorCode::kForbidden) return "forbidden";
  return error.code == ErrorCode::kNotFound ? "not found" : error.message;
}

std::string name_unread(std::string_view plural, const kube::Error& error) {
  return fmt::format("{}: {}", plural, reason_unread(error));
}

fit::UnreadQueue unread_queue(std::string kind, const std::string& name, const kube::Error& error,
                              std::string_view correction) {
  const std::string shown = fmt::format("{} {}", kind, name);
  if (error.code == ErrorCode::kForbidden)
    return {kind, fmt::format(
                      "{}: forbidden, so its quota was not compared: ask for the right to get {}s",
                      shown, kube::to_lower(kind))};
  if (error.code != ErrorCode::kNotFound)
    return {kind, fmt::format("{}: {}, so its quota was not compared", shown, error.message)};
  if (!is_missing(error))
    return {kind, fmt::format("{}: the cluster has no {}s: install Kueue, or take the label {} "
                              "away from the job",
                              shown, kind, kQueueLabel)};
  return {kind, fmt::format("{}: not found: create it or {}", shown, correction), true};
}

// These objects are read before it is known which resources they have quotas of.
struct QueueObjects {
  std::vector<Json> queues;
  std::vector<Json> cohorts;
  std::string unread;
};

Task<QueueObjects> read_cohort(kube::ApiClient& client, Json own) {
  QueueObjects read;
  const Json& spec = own.get("spec");
  const bool has_cohort =
      !spec.get_string("cohort").empty() || !spec.get_string("cohortName").empty();
  if (has_cohort) {
    std::function<void(const Json&)> add = [&read](const Json& each) {
      read.queues.push_back(each);
    };
    const auto queues =
        co_await list_of_kueue(client, "clusterqueues", "ClusterQueue", "", std::move(add));
    add = [&read](const Json& each) { read.cohorts.push_back(each); };
    const auto cohorts = co_await list_of_kueue(client, "cohorts", "Cohort", "", std::move(add));
    if (!queues) {
      read.queues.clear();
      read.unread = name_unread("clusterqueues", queues.error());
    }
    // An older Kueue has no Cohorts.
    if (!cohorts && cohorts.error().code != ErrorCode::kNotFound) {
      read.cohorts.clear();
      if (!read.unread.empty()) read.unread += ", ";
      read.unread += name_unread("cohorts", cohorts.error());
    }
  }
  const std::string name(own.get("metadata").get_string("name"));
  std::erase_if(read.queues, [&name](const Json& each) {
    return each.get("metadata").get_string("name") == name;
  });
  read.queues.push_back(std::move(own));
  co_return read;
}

KueueState make_state(const fit::Asked& asked, const QueueObjects& objects) {
  KueueState state;
  std::vector<std::string> names = fit::resources_of(asked);
  for (const std::vector<Json>* list : {&objects.queues, &objects.cohorts})
    for (const Json& each : *list)
      std::ranges::move(fit::covered_resources(each), std::back_inserter(names));
  state.resources = fit::ResourceTable(names);
  for (const Json& each : objects.queues) state.add(fit::ClusterQueue::read(each, state.resources));
  for (const Json& each : objects.cohorts)
    state.cohorts.push_back(fit::Cohort::read(each, state.resources));
  state.queue = objects.queues.back().get("metadata").get_string("name");
  state.cohort_unread = objects.unread;
  return state;
}

// A Workload that waits names a LocalQueue, and that one has its ClusterQueue. Returns whether the
// job has reserved quota already. If the Workloads of all namespaces may not be listed, those of
// the job's namespace say that.
Task<bool> read_workloads(kube::ApiClient& client, std::string ns, KueueState& state) {
  std::map<kube::ObjectKey, std::string> cluster_queues;
  std::function<void(const Json&)> add = [&cluster_queues](const Json& each) {
    const auto meta = kube::ObjectMeta::of(each);
    const Json& spec = each.get("spec");
    if (spec.get_string("stopPolicy", "None") == "None")
      cluster_queues[{meta.ns, meta.name}] = spec.get_string("clusterQueue");
  };
  const auto queues =
      co_await list_of_kueue(client, "localqueues", "LocalQueue", "", std::move(add));
  bool is_reserved = false;
  const std::function<void(const Json&)> add_workload = [&](const Json& each) {
    auto read = fit::QueuedWorkload::read(each, state.resources);
    if (!read) return;
    is_reserved |= !read->is_waiting() && state.is_own(*read, ns);
    const auto at = cluster_queues.find({read->ns, read->queue});
    if (read->is_waiting() && at != cluster_queues.end()) read->cluster_queue = at->second;
    state.add(std::move(*read));
  };
  const auto workloads = co_await list_of_kueue(client, "workloads", "Workload", "", add_workload);
  if (!workloads && !state.job_name.empty())
    co_await list_of_kueue(client, "workloads", "Workload", ns, add_workload);
  if (queues && workloads) co_return is_reserved;
  state.workloads.clear();
  state.workloads_unread = queues ? name_unread("workloads", workloads.error())
                                  : name_unread("localqueues", queues.error());
  co_return is_reserved;
}

// The visibility API answers with a summary that has no name of its own.
Task<Result<Json>> get_pending(kube::ApiClient& client, std::string queue, std::size_t offset) {
  Result<Json> found = Json();
  for (const char* version : kVersions) {
    std::string path = fmt::format(
        "/apis/visibility.{}/{}/clusterqueues/{}/pendingworkloads"
        "?limit={}&offset={}",
        kGroup, version, kube::percent_encode(queue), kPage, offset);
    auto stream = co_await client.stream(std::move(path));
    if (!stream) {
      found = tl::unexpected(stream.error());
      if (stream.error().code != ErrorCode::kNotFound) break;
      continue;
    }
    std::string text;
    while (text.size() < kMaxPending) {
      auto more = co_await (*stream)->read_some(kLongestSilence);
      if (!more) co_return tl::unexpected(more.error());
      if (more->empty()) co_return kube::parse_json(text);
      text += *more;
    }
    co_return kube::fail(ErrorCode::kTooLarge, "more than {} bytes", kMaxPending);
  }
  co_return found;
}

// A queue that is longer than all pages is as one whose order is not served.
Task<void> read_pending(kube::ApiClient& client, KueueState& state) {
  std::vector<fit::PendingPosition> pending;
  for (std::size_t page = 0; page < kMaxPages; ++page) {
    const auto summary = co_await get_pending(client, state.queue, page * kPage);
    if (!summary) co_return;
    const auto& items = summary->get_array("items");
    for (const Json& each : items) {
      const auto meta = kube::ObjectMeta::of(each);
      pending.push_back(
          {meta.ns, meta.owner_references.empty() ? std::string() : meta.owner_references[0].name,
           each.get_int("priority")});
    }
    if (items.size() >= kPage) continue;
    state.pending = std::move(pending);
    co_return;
  }
}

Task<void> read_flavors(kube::ApiClient& client, KueueState& state) {
  std::function<void(const Json&)> add = [&state](const Json& each) {
    state.flavors.push_back(fit::ResourceFlavor::read(each));
  };
  const auto flavors =
      co_await list_of_kueue(client, "resourceflavors", "ResourceFlavor", "", std::move(add));
  if (flavors) co_return;
  state.flavors.clear();
  state.flavors_unread = name_unread("resourceflavors", flavors.error());
}

// The priority is that of the job's WorkloadPriorityClass, else of its pods' PriorityClass, else of
// the PriorityClass that is the default.
Task<void> read_priority(kube::ApiClient& client, const fit::Asked& asked,
                         std::string priority_class, KueueState& state) {
  if (!priority_class.empty()) {
    kube::ObjectKey key{"", std::move(priority_class)};
    const auto found = co_await get_of_kueue(client, "workloadpriorityclasses",
                                             "WorkloadPriorityClass", std::move(key));
    if (found)
      state.priority = found->get_int("value");
    else
      state.priority_unread = name_unread("workloadpriorityclasses", found.error());
    co_return;
  }
  std::string name;
  for (const fit::Role& role : asked.roles)
    if (name.empty()) name = role.pod.priority_class;
  kube::Resource resource{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};
  const auto classes = co_await list_all(client, std::move(resource), "", "");
  if (!classes) {
    state.priority_unread = name_unread("priorityclasses", classes.error());
    co_return;
  }
  for (const Json& each : *classes) {
    const bool is_it = name.empty() ? each.get_bool("globalDefault")
                                    : each.get("metadata").get_string("name") == name;
    if (is_it) state.priority = each.get_int("value");
  }
}

Task<void> read_namespace(kube::ApiClient& client, std::string ns, KueueState& state) {
  kube::Resource resource{"", "v1", "namespaces", "Namespace", false};
  kube::ObjectKey key{"", std::move(ns)};
  const auto found = co_await client.get(std::move(resource), std::move(key));
  if (found) state.namespace_labels = kube::ObjectMeta::of(*found).labels;
}

std::string find_inactive(const Json& local) {
  const std::string_view policy = local.get("spec").get_string("stopPolicy", "None");
  if (policy == "None") return {};
  return fmt::format(
      "lets nothing through while spec.stopPolicy is {}; None would let jobs through", policy);
}

}  // namespace

void PlannedJob::read_labels(const Json& object) {
  const auto meta = kube::ObjectMeta::of(object);
  if (const std::string_view label = queue_of(meta.labels); !label.empty()) queue = label;
  if (const auto at = meta.labels.find(kPriorityLabel); at != meta.labels.end())
    priority_class = at->second;
}

Task<void> read_queue(kube::ApiClient& client, const fit::Asked& asked, PlannedJob job,
                      fit::Snapshot& snapshot) {
  const kube::ObjectKey key{asked.ns, asked.queue};
  if (job.jobs > 1) {
    snapshot.queue_unread = {
        "LocalQueue",
        fmt::format("LocalQueue {}: Kueue admits each of the {} jobs of the files by itself: plan "
                    "the jobs one by one",
                    key.to_string(), job.jobs)};
    co_return;
  }
  const auto local = co_await get_of_kueue(client, "localqueues", "LocalQueue", key);
  if (!local) {
    snapshot.queue_unread =
        unread_queue("LocalQueue", key.to_string(), local.error(),
                     fmt::format("correct the label {} of the job", kQueueLabel));
    co_return;
  }
  const kube::ObjectKey above{"", std::string(local->get("spec").get_string("clusterQueue"))};
  auto queue = co_await get_of_kueue(client, "clusterqueues", "ClusterQueue", above);
  if (!queue) {
    snapshot.queue_unread = unread_queue(
        "ClusterQueue", above.name, queue.error(),
        fmt::format("correct spec.clusterQueue of the LocalQueue {}", key.to_string()));
    co_return;
  }
  const QueueObjects objects = co_await read_cohort(client, std::move(*queue));
  KueueState state = make_state(asked, objects);
  state.local_queue_inactive = find_inactive(*local);
  state.job_kind = std::move(job.kind);
  state.job_name = std::move(job.name);
  state.job_created = job.created;
  co_await read_flavors(client, state);
  const bool is_reserved = co_await read_workloads(client, asked.ns, state);
  if (is_reserved) co_return;
  co_await read_pending(client, state);
  co_await read_priority(client, asked, std::move(job.priority_class), state);
  co_await read_namespace(client, asked.ns, state);
  snapshot.kueue = std::move(state);
}

}  // namespace trainer
