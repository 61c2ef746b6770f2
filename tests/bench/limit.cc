#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {
namespace {

using kube::Json;
using kube::Task;

constexpr const char* kNamespace = "bench-limit";
constexpr int kWidth = 32;
constexpr int kTrainNodes = 2;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// This is a stored object in a form in which it could be sent: without the server's fields. The
// names of its job are marked, to be replaced for each copy.
std::string as_template(Json object) {
  object.erase("status");
  if (auto* meta = object.find("metadata")) {
    for (const char* added : {"uid", "resourceVersion", "creationTimestamp", "generation",
                              "managedFields", "ownerReferences", "namespace"}) {
      meta->erase(added);
    }
  }
  const bool is_job = object.get_string("kind") == "Job";
  if (is_job) {
    object["spec"].erase("selector");
    if (auto* labels = object.find_path({"spec", "template", "metadata", "labels"})) {
      for (const char* added : {"batch.kubernetes.io/controller-uid", "controller-uid",
                                "batch.kubernetes.io/job-name", "job-name"}) {
        labels->erase(added);
      }
    }
  }
  if (object.get_string("kind") == "Service") {
    for (const char* added : {"clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
                              "sessionAffinity"}) {
      object["spec"].erase(added);
    }
  }
  std::string text = kube::print_json(object);
  for (const char* name : {"\"j0\"", "\"j0-", "\"j0."}) {
    std::string marked(name);
    marked.replace(1, 2, "@JOB@");
    replace_all(text, name, marked);
  }
  return text;
}

Json instance(const std::string& text, int number) {
  std::string named = text;
  replace_all(named, "@JOB@", "j" + std::to_string(number));
  Json object = *kube::parse_json(named);
  object["metadata"].set("namespace", kNamespace);
  return object;
}

struct Templates {
  std::string trainjob, snapshot, jobset, service, job;
  Json trainjob_status, jobset_status;
};

// Everything that the controller sends for one job, in its order.
Task<void> drive(Cluster& cluster, const Templates& made, const BurstResult& measured, int number) {
  auto& client = cluster.client();
  const kube::ObjectKey key{kNamespace, "j" + std::to_string(number)};
  const kube::ObjectKey runtime{"", "bench"};
  co_await cluster.must(client.create(kTrainJobs, instance(made.trainjob, number)));
  co_await cluster.must(client.get(kClusterTrainingRuntimes, runtime));
  co_await cluster.must(client.create(kube::kConfigMaps, instance(made.snapshot, number)));
  co_await cluster.must(
      client.apply(kJobSets, key, instance(made.jobset, number), "trainer", true));
  co_await cluster.must(client.create(kube::kServices, instance(made.service, number)));
  co_await cluster.must(client.create(kube::kJobs, instance(made.job, number)));
  co_await write_status(cluster, kTrainJobs, key, made.trainjob_status,
                        measured.trainjob_status_writes);
  co_await write_status(cluster, kJobSets, key, made.jobset_status, measured.jobset_status_writes);
  co_await write_events(cluster, "TrainJob", key, measured.events);
}

Task<void> run_limit(Context& context, const BurstResult& measured, Limit& limit) {
  auto& cluster = context.cluster;
  Templates made;
  made.trainjob = as_template(measured.trainjob);
  made.snapshot = as_template(measured.snapshot);
  made.jobset = as_template(measured.jobset);
  made.service = as_template(measured.service);
  made.job = as_template(measured.job);
  if (const auto* status = measured.trainjob.find("status")) made.trainjob_status = *status;
  if (const auto* status = measured.jobset.find("status")) made.jobset_status = *status;
  std::function<Task<void>(int)> one = [&cluster, &made, &measured](int i) {
    return drive(cluster, made, measured, i);
  };
  co_await measure_limit(cluster, kNamespace, context.jobs, context.jobs * kTrainNodes, one, limit);
}

// Returns the time of this process.
double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

Task<void> measure_limit(Cluster& cluster, std::string ns, int count, int pods,
                         std::function<Task<void>(int)> one, Limit& limit) {
  co_await cluster.make_namespace(ns);
  Tally made([](const Json&) { return true; });
  auto watching = cluster.watch(kube::kPods, ns, made);
  co_await cluster.wait_until([&] { return made.is_synced(); }, std::chrono::seconds(10),
                              "the first list");
  const auto begin = Steady::now();
  const double cpu_before = cpu_seconds();
  co_await cluster.for_each(count, kWidth, std::move(one));
  const double written = seconds_since(begin);
  limit.cpu_ms = (cpu_seconds() - cpu_before) * 1000 / count;
  const auto desired = static_cast<std::size_t>(pods);
  co_await cluster.wait_until([&] { return made.count() == desired; }, std::chrono::seconds(600),
                              "all pods");
  const double with_pods = std::chrono::duration<double>(made.reached() - begin).count();
  limit.pods_per_second = count / with_pods;
  // The controller's statuses end with what the scheduler says of the last pod, so the driver waits
  // for that too.
  co_await cluster.wait_until([&] { return seconds_since(made.changed()) > 3; },
                              std::chrono::seconds(600), "the scheduler's word on each pod");
  const double settled = std::chrono::duration<double>(made.changed() - begin).count();
  limit.settled_per_second = count / std::max(written, settled);
  watching->cancel();
  co_await watching->join();
}

Task<void> write_status(Cluster& cluster, kube::Resource resource, kube::ObjectKey key, Json status,
                        int times) {
  for (int i = 0; i < times; ++i) {
    // Each write differs, like the controller's; an equal one would be no write for the server.
    Json patch;
    patch.set("status", status);
    Json marker = Json::object({{"type", "Bench"},
                                {"status", "True"},
                                {"reason", "R" + std::to_string(i)},
                                {"message", ""},
                                {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
    patch["status"].set("conditions", Json::array({marker}));
    co_await cluster.must(cluster.client().merge_patch(resource, key, std::move(patch), "status"));
  }
}

Task<void> write_events(Cluster& cluster, std::string kind, kube::ObjectKey key, int times) {
  for (int i = 0; i < times; ++i) {
    Json event = Json::object({{"apiVersion", "v1"},
                               {"kind", "Event"},
                               {"type", "Normal"},
                               {"reason", "Bench"},
                               {"message", "-"}});
    event["metadata"].set("name", key.name + "." + std::to_string(i)).set("namespace", key.ns);
    event["involvedObject"].set("kind", kind).set("name", key.name).set("namespace", key.ns);
    co_await cluster.must(cluster.client().create(kube::kEvents, std::move(event)));
  }
}

std::vector<Figure> limit(Context& context, const BurstResult& measured) {
  Limit limit;
  context.cluster.run(run_limit(context, measured, limit));
  context.cluster.run(context.cluster.remove_namespace(kNamespace));
  return {{"limit: the same requests by a plain driver, until all pods exist",
           limit.pods_per_second, "jobs/s"},
          {"limit: the same, until all is written and no pod changes", limit.settled_per_second,
           "jobs/s"},
          {"limit: the driver's own CPU a job, without webhooks and watches", limit.cpu_ms, "ms"},
          {"share of the limit, pods", 100 * measured.pods_per_second / limit.pods_per_second, "%",
           80, true},
          {"share of the limit, settled",
           100 * measured.settled_per_second / limit.settled_per_second, "%", 80, true}};
}

}  // namespace trainer::bench
