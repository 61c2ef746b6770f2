// Local mode's Job controller and scheduler: what enqueues them, and what a reconcile sends.
#include <algorithm>
#include <utility>

#include "controller/kinds/batch/registration.hh"
#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

using Lines = std::vector<std::string>;

const std::string kJob = "/apis/batch/v1/namespaces/n/jobs/j";
const std::string kPods = "/api/v1/namespaces/n/pods";

std::string job_text(const std::string& version, const std::string& status = "{}") {
  return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"n","uid":"u1",
      "resourceVersion":")" +
         version + R"("},"spec":{"completionMode":"Indexed","completions":2,"parallelism":2,
      "template":{"spec":{"containers":[{"name":"c"}]}}},"status":)" +
         status + "}";
}

// A pod of Job j with the tracking finalizer; `more`: members of the object.
std::string pod_text(const std::string& name, const std::string& version,
                     const std::string& more = R"("status":{"phase":"Pending"})") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
         R"(","namespace":"n","uid":"u-)" + name + R"(","resourceVersion":")" + version +
         R"(","finalizers":["batch.kubernetes.io/job-tracking"],
         "annotations":{"batch.kubernetes.io/job-completion-index":"0"},
         "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u1",
           "controller":true}]},)" +
         more + "}";
}

struct BatchFixture : trainer::test::IdleManager {
  int version = 100;
  std::size_t seen = 0;

  BatchFixture() : IdleManager(local_registry()) {
    api.on("POST", kPods).always().reply([this](const kube::ReceivedRequest& request) {
      Json object = *kube::parse_json(request.body);
      const std::string name(object.get("metadata").get_string("name"));
      object["metadata"].set("uid", "u-" + name).set("resourceVersion", std::to_string(++version));
      object["status"].set("phase", "Pending");
      return kube::ScriptedReply(201, kube::print_json(object));
    });
    api.on("PATCH", kJob + "/status").always().reply([this](const auto& request) {
      const auto patch = kube::parse_json(request.body);
      return kube::ScriptedReply(
          200, job_text(std::to_string(++version), kube::print_json(patch->get("status"))));
    });
  }
  kube::ObjectCache<batch::BatchPodView>& batch_pods_cache() {
    return cache<batch::BatchPodView>(batch_pods());
  }
  void see_job() {
    REQUIRE(cache<kube::StoredObject>(all_of(kube::kJobs)).upsert(job_text("5")));
    enqueued.clear();
  }
  // Pods are named by their index alone.
  Lines sent(std::string_view controller, const kube::ObjectKey& key) {
    REQUIRE(reconcile(controller, key));
    Lines lines;
    for (; seen < api.log().size(); ++seen) {
      const auto& request = api.log()[seen];
      const auto body = kube::parse_json(request.body);
      const std::string name(body ? body->get("metadata").get_string("generateName") : "");
      lines.push_back(request.method + " " + request.path + (name.empty() ? "" : " " + name));
    }
    return lines;
  }
  Lines sent_for_job() { return sent("job", {"n", "j"}); }
};

}  // namespace

TEST_CASE_METHOD(BatchFixture, "a Job gets its pods, then its status, then its counters") {
  see_job();
  CHECK(sent_for_job() ==
        Lines{"POST " + kPods + " j-0-", "POST " + kPods + " j-1-", "PATCH " + kJob + "/status"});
  CHECK(std::count(enqueued.begin(), enqueued.end(), "job n/j for counters") == 2);
  CHECK(std::count(enqueued.begin(), enqueued.end(), "scheduler pods now") == 2);
  CHECK(sent_for_job().empty());  // counters wait for others
  clock.advance(std::chrono::milliseconds(100));
  CHECK(sent_for_job() == Lines{"PATCH " + kJob + "/status"});
}

TEST_CASE_METHOD(BatchFixture, "what enqueues a Job") {
  see_job();
  const auto jobs = [this] {
    Lines found;
    for (const std::string& each : std::exchange(enqueued, {}))
      if (each.starts_with("job ")) found.push_back(each);
    return found;
  };
  auto& pods = batch_pods_cache();
  REQUIRE(pods.upsert(pod_text("j-0-a", "10")));
  CHECK(jobs() == Lines{"job n/j for counters"});
  REQUIRE(pods.upsert(pod_text("j-0-a", "11")));  // nothing that is read
  CHECK(jobs().empty());
  REQUIRE(pods.upsert(pod_text("j-0-a", "12", R"("status":{"phase":"Failed"})")));
  CHECK(jobs() == Lines{"job n/j soon", "job n/j soon"});
  REQUIRE(pods.remove(pod_text("j-0-a", "13")));
  CHECK(jobs() == Lines{"job n/j soon"});
}

TEST_CASE_METHOD(BatchFixture,
                 "pods of a Job that is gone lose their finalizer, also after a restart") {
  REQUIRE(batch_pods_cache().upsert(pod_text("j-0-a", "10")));
  enqueued.clear();
  made.find("job")->second.controller->enqueue_all();
  CHECK(enqueued == Lines{"job n/j now"});
  api.on("PATCH", kPods + "/j-0-a").answer(200, pod_text("j-0-a", "11"));
  CHECK(sent_for_job() == Lines{"PATCH " + kPods + "/j-0-a"});
  CHECK(kube::parse_json(api.log().back().body)->get("metadata") ==
        *kube::parse_json(R"({"uid":"u-j-0-a","finalizers":null})"));
}

TEST_CASE_METHOD(BatchFixture, "a pod gets the node by two writes, and waits by one") {
  auto& nodes = cache<kube::StoredObject>(all_of(kube::kNodes));
  const auto node = [](const std::string& version, const std::string& cpus) {
    return R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"local","uid":"n1",
      "resourceVersion":")" +
           version + R"("},"status":{"allocatable":{"cpu":")" + cpus + R"("}}})";
  };
  const std::string spec =
      R"("spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]},
         "status":{"phase":"Pending"})";
  const std::string path = kPods + "/j-0-a";
  REQUIRE(batch_pods_cache().upsert(pod_text("j-0-a", "10", spec)));
  REQUIRE(nodes.upsert(node("1", "1")));
  CHECK(std::count(enqueued.begin(), enqueued.end(), "scheduler pods now") == 2);
  const std::string waiting = spec.substr(0, spec.size() - 1) +
                              R"(,"conditions":[{"type":"PodScheduled","status":"False",
      "reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."}]})";
  api.on("PATCH", path + "/status").answer(200, pod_text("j-0-a", "11", waiting));
  CHECK(sent("scheduler", {"", "pods"}) == Lines{"PATCH " + path + "/status"});
  CHECK(sent("scheduler", {"", "pods"}).empty());
  enqueued.clear();
  REQUIRE(nodes.upsert(node("2", "2")));
  CHECK(enqueued == Lines{"scheduler pods now"});
  api.on("PATCH", path + "/status").answer(200, pod_text("j-0-a", "12", spec));
  api.on("PATCH", path).answer(200, pod_text("j-0-a", "13", R"("spec":{"nodeName":"local"})"));
  CHECK(sent("scheduler", {"", "pods"}) == Lines{"PATCH " + path + "/status", "PATCH " + path});
  CHECK(sent("scheduler", {"", "pods"}).empty());
}

TEST_CASE("local mode's registrations are in no installation") {
  for (const KindRegistration& each : local_registry()) {
    CHECK(each.option == "local");
    CHECK(each.controller.rules.empty());
    CHECK(each.crds.empty());
  }
}
