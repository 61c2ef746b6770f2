// No namespace keeps the controllers from serving the others, and a replica that does not lead
// queues nothing.
#include <fmt/format.h>

#include <algorithm>

#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using std::chrono::milliseconds;

namespace {

const std::string kWebhooks =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "pods.jobset.trainer.kubeflow.org";

// With one Job to create.
std::string jobset(const std::string& ns, const std::string& name, int version = 5) {
  return fmt::format(
      R"({{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
      "metadata":{{"name":"{1}","namespace":"{0}","uid":"{0}-{1}","resourceVersion":"{2}"}},
      "spec":{{"network":{{"enableDNSHostnames":false}},
        "replicatedJobs":[{{"name":"w","replicas":1,"groupName":"default",
          "template":{{"spec":{{"template":{{"spec":{{"containers":[]}}}}}}}}}}]}}}})",
      ns, name, version);
}

// On the TrainingRuntime `r`, which is read first.
std::string new_trainjob(const std::string& ns, const std::string& name) {
  return fmt::format(
      R"({{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
      "metadata":{{"name":"{1}","namespace":"{0}","uid":"{0}-{1}","resourceVersion":"201",
        "generation":1}},
      "spec":{{"runtimeRef":{{"name":"r","kind":"TrainingRuntime",
        "apiGroup":"trainer.kubeflow.org"}}}}}})",
      ns, name);
}

std::string runtime_path(const std::string& ns) {
  return "/apis/trainer.kubeflow.org/v1alpha1/namespaces/" + ns + "/trainingruntimes/r";
}
std::string jobs_path(const std::string& ns) {
  return "/apis/batch/v1/namespaces/" + ns + "/jobs";
}

struct FairnessFixture : trainer::test::IdleManager {
  kube::TaskGroup tasks{io.get_executor(), nullptr};

  ~FairnessFixture() { kube::run_task(io, manager.drain(milliseconds(0))); }

  // The first lists of all collections have arrived, with what was seen before.
  void sync() {
    for (const auto& entry : manager.caches().entries()) {
      entry->cache->begin_list();
      for (const auto& [collection, object] : listed_) {
        if (entry->collection == collection) REQUIRE(entry->cache->upsert(object));
      }
      entry->cache->listed_at("100");
      entry->cache->end_list();
    }
  }
  void exists(const kube::Collection& collection, std::string object) {
    listed_.emplace_back(collection, std::move(object));
  }
  void lead() { kube::run_task(io, manager.start_workers()); }

  bool has_asked(const std::string& method, const std::string& path) const {
    return std::any_of(api.log().begin(), api.log().end(), [&](const auto& request) {
      return request.method == method && request.path == path;
    });
  }
  // Returns the figures of all queues.
  std::string queue_figures() {
    manager.collect();
    std::string found;
    const std::string text = metrics.render();
    for (const char* controller : {"trainjob_controller", "jobset", "pod"}) {
      for (const char* figure : {"workqueue_depth", "workqueue_adds_total"}) {
        const std::string series =
            fmt::format("{0}{{controller=\"{1}\",name=\"{1}\"}} ", figure, controller);
        const auto at = text.find(series);
        REQUIRE(at != std::string::npos);
        const auto begin = at + series.size();
        found += text.substr(begin, text.find('\n', begin) - begin) + " ";
      }
    }
    return found;
  }

 private:
  std::vector<std::pair<kube::Collection, std::string>> listed_;
};

}  // namespace

TEST_CASE_METHOD(FairnessFixture,
                 "a replica that does not lead queues nothing, whatever comes and goes") {
  sync();
  int version = 200;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "j" + std::to_string(i);
    REQUIRE(jobsets().upsert(jobset("n", name, ++version)));
    REQUIRE(trainjobs().upsert(fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"n","uid":"t-{0}","resourceVersion":"{1}"}}}})",
        name, ++version)));
    for (const char* phase : {"Pending", "Running"}) {
      REQUIRE(pods().upsert(fmt::format(
          R"({{"metadata":{{"name":"{0}-p","namespace":"n","uid":"p-{0}","resourceVersion":"{1}",
            "labels":{{"jobset.sigs.k8s.io/jobset-name":"{0}"}}}},
            "spec":{{}},"status":{{"phase":"{2}"}}}})",
          name, ++version, phase)));
    }
    REQUIRE(jobsets().remove(jobset("n", name, ++version)));
  }
  CHECK_FALSE(enqueued.empty());  // a leader would have queued them
  CHECK(queue_figures() == "0 0 0 0 0 0 ");
  CHECK(clock.timers() == 0);
}

TEST_CASE_METHOD(FairnessFixture,
                 "on taking the lead all that exists is reconciled, of each controller") {
  exists(all_of(kJobSets), jobset("n", "js"));
  exists(all_of(kTrainJobs), R"({"metadata":{"name":"t","namespace":"n","uid":"u2",
      "resourceVersion":"7","generation":2},"spec":{"runtimeRef":{"name":"r"}}})");
  exists(jobset_pods(), R"({"metadata":{"name":"p","namespace":"n","uid":"u3","resourceVersion":"8",
      "labels":{"jobset.sigs.k8s.io/jobset-name":"x"},
      "annotations":{"jobset.sigs.k8s.io/jobset-name":"x",
        "alpha.jobset.sigs.k8s.io/exclusive-topology":"rack",
        "batch.kubernetes.io/job-completion-index":"0"}},
      "spec":{"nodeName":"m"},"status":{"phase":"Running"}})");
  sync();
  api.on("POST", jobs_path("n")).hold();
  api.on("GET", "/api/v1/namespaces/n/configmaps/t-runtime-snapshot").hold();
  api.on("GET", kWebhooks).hold();
  enqueued.clear();
  lead();
  CHECK(kube::run_until(io, [this] {
    return has_asked("POST", jobs_path("n")) && has_asked("GET", kWebhooks) &&
           has_asked("GET", "/api/v1/namespaces/n/configmaps/t-runtime-snapshot");
  }));
  std::sort(enqueued.begin(), enqueued.end());
  CHECK(enqueued ==
        std::vector<std::string>{"jobset n/js now", "pod n/p now", "trainjob_controller n/t now"});
}

TEST_CASE_METHOD(FairnessFixture,
                 "a namespace whose reconciles do not end leaves workers to the others") {
  // All of them wait for one answer.
  for (int i = 0; i < 100; ++i)
    exists(all_of(kTrainJobs), new_trainjob("greedy", "t" + std::to_string(i)));
  api.on("GET", runtime_path("greedy")).hold();
  sync();
  lead();
  REQUIRE(kube::run_until(io, [this] { return has_asked("GET", runtime_path("greedy")); }));
  REQUIRE(trainjobs().upsert(new_trainjob("neighbour", "t")));
  api.on("GET", runtime_path("neighbour")).hold();
  CHECK(kube::run_until(
      io, [this] { return has_asked("GET", runtime_path("neighbour")); }, std::chrono::seconds(5)));
}

TEST_CASE_METHOD(FairnessFixture,
                 "a namespace whose writes queue delays the others by a few writes") {
  for (int i = 0; i < 100; ++i)
    exists(all_of(kJobSets), jobset("greedy", "js" + std::to_string(i)));
  sync();
  // The scripts keep these, and are asked until the fixture is gone.
  struct Counts {
    int creates = 0;
    int before_neighbour = -1;
  };
  const auto counts = std::make_shared<Counts>();
  api.on("POST", jobs_path("greedy")).always().reply([counts](const kube::ReceivedRequest&) {
    ++counts->creates;
    return kube::ScriptedReply(403, R"({"kind":"Status","code":403,"reason":"Forbidden"})");
  });
  api.on("POST", jobs_path("neighbour")).reply([counts](const kube::ReceivedRequest&) {
    counts->before_neighbour = counts->creates;
    return kube::ScriptedReply(403, R"({"kind":"Status","code":403,"reason":"Forbidden"})");
  });
  REQUIRE(jobsets().upsert(jobset("neighbour", "js", 200)));
  lead();
  CHECK(kube::run_until(io, [counts] { return counts->before_neighbour >= 0; }));
  CHECK(counts->before_neighbour <= 2 * static_cast<int>(kube::Pacing::kWritesInFlight));
}
