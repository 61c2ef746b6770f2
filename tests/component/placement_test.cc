// Followers in another domain than their leader, against a scripted API server.
#include <fmt/format.h>

#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kPodsPath = "/api/v1/namespaces/n/pods";
const std::string kPlacementWebhooks =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "pods.jobset.trainer.kubeflow.org";

// Pod `index` of s-w-0, not scheduled yet, with a node selector for `rack`.
Json pod(int index, const std::string& rack = {}) {
  Json made = *kube::parse_json(
      fmt::format(R"({{"kind":"Pod","metadata":{{"name":"s-w-0-{0}-abcde","namespace":"n",
      "uid":"p{0}","resourceVersion":"1{0}",
      "labels":{{"jobset.sigs.k8s.io/jobset-name":"s","jobset.sigs.k8s.io/replicatedjob-name":"w",
        "jobset.sigs.k8s.io/job-index":"0","jobset.sigs.k8s.io/job-key":"key"}},
      "annotations":{{"jobset.sigs.k8s.io/jobset-name":"s",
        "alpha.jobset.sigs.k8s.io/exclusive-topology":"rack",
        "batch.kubernetes.io/job-completion-index":"{0}"}},
      "ownerReferences":[{{"kind":"Job","uid":"job","controller":true}}]}},
      "spec":{{}},"status":{{"phase":"Pending"}}}})",
                  index));
  if (!rack.empty()) made["spec"].set("nodeSelector", Json::object({{"rack", rack}}));
  return made;
}

Json leader(const std::string& version = "10") {
  Json made = pod(0);
  made["spec"].set("nodeName", "n1");
  made["metadata"].set("resourceVersion", version);
  return made;
}

struct PlacementFixture : trainer::test::IdleManager {
  using IdleManager::IdleManager;
  void seen(const Json& object) { REQUIRE(pods().upsert(kube::print_json(object))); }
  // The leaders that were enqueued.
  std::vector<std::string> leaders() const {
    std::vector<std::string> found;
    for (const std::string& each : enqueued) {
      if (each.starts_with("pod ")) found.push_back(each);
    }
    return found;
  }

  // The API server's objects: the webhooks, node n1 in rack r1, and these pods.
  void exists(const std::vector<Json>& pods) {
    Json::Array items(pods.begin(), pods.end());
    api.on("GET", kPlacementWebhooks).answer(200, "{}").always();
    api.on("GET", "/api/v1/nodes/n1")
        .answer(200, R"({"kind":"Node","metadata":{"name":"n1","labels":{"rack":"r1"}}})")
        .always();
    api.on("GET", kPodsPath)
        .answer(200, kube::print_json(
                         Json::object({{"metadata", Json::object({{"resourceVersion", "99"}})},
                                       {"items", std::move(items)}})))
        .always();
    for (const Json& each : pods) {
      const std::string path =
          kPodsPath + "/" + std::string(each.find_path({"metadata"})->get_string("name"));
      api.on("PATCH", path + "/status").answer(200, "{}").always();
      api.on("DELETE", path).answer(200, "{}").always();
    }
  }

  kube::Result<kube::Requeue> reconcile() {
    return IdleManager::reconcile("pod", {"n", "s-w-0-0-abcde"});
  }

  // The writes that were made, in order.
  std::vector<std::string> writes() const {
    std::vector<std::string> found;
    for (const auto& request : api.log()) {
      if (request.method != "GET") found.push_back(request.method + " " + request.path);
    }
    return found;
  }
};

}  // namespace

TEST_CASE_METHOD(PlacementFixture, "only a leader that moved is enqueued") {
  seen(pod(0));
  seen(pod(1, "r1"));
  CHECK(leaders().empty());
  seen(leader("20"));
  CHECK(leaders() == std::vector<std::string>{"pod n/s-w-0-0-abcde now"});
  Json annotated = leader("21");
  annotated["metadata"]["annotations"].set("example.com/looked-at", "yes");
  seen(annotated);
  CHECK(leaders().size() == 1);
  Json running = leader("22");
  running["status"].set("phase", "Running");
  seen(running);
  CHECK(leaders().size() == 2);
  // A leader that is over does not decide the placement of the others.
  Json failed = leader("23");
  failed["status"].set("phase", "Failed");
  seen(failed);
  CHECK(leaders().size() == 2);

  Json prepared = leader("30");
  prepared["metadata"]["annotations"].set("alpha.jobset.sigs.k8s.io/node-selector", "true");
  Json plain = leader("31");
  plain["metadata"]["annotations"].erase("alpha.jobset.sigs.k8s.io/exclusive-topology");
  seen(prepared);
  seen(plain);
  CHECK(leaders().size() == 2);
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(PlacementFixture, "followers in the right place cost three reads and no write") {
  seen(leader());
  exists({leader(), pod(1, "r1")});
  REQUIRE(reconcile());
  CHECK(writes().empty());
  CHECK(api.log().size() == 3);
}

TEST_CASE_METHOD(PlacementFixture, "misplaced followers are marked, and then deleted") {
  seen(leader());
  exists({leader(), pod(1, "r1"), pod(2, "r2")});
  REQUIRE(reconcile());
  const auto written = writes();
  REQUIRE(written.size() == 4);
  for (const std::string name : {"s-w-0-1-abcde", "s-w-0-2-abcde"}) {
    const auto at = [&](const std::string& line) {
      return std::find(written.begin(), written.end(), line) - written.begin();
    };
    CHECK(at("PATCH " + kPodsPath + "/" + name + "/status") < 2);
    CHECK(at("DELETE " + kPodsPath + "/" + name) < 4);
  }
  for (const auto& request : api.log()) {
    if (request.method == "PATCH") {
      CHECK(request.body.find("ExclusivePlacementViolation") != std::string::npos);
    } else if (request.method == "DELETE") {
      CHECK(request.body.find("\"Background\"") != std::string::npos);
    }
  }
}

TEST_CASE_METHOD(PlacementFixture,
                 "a follower that is being deleted does not cause other deletions") {
  seen(leader());
  Json going = pod(2, "r2");
  going["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
  Json failed = pod(3, "r2");
  failed["status"].set("phase", "Failed");
  exists({leader(), pod(1, "r1"), going, failed});
  REQUIRE(reconcile());
  CHECK(writes().empty());
}

TEST_CASE_METHOD(PlacementFixture, "without the webhooks nothing is read or deleted") {
  seen(leader());
  REQUIRE(reconcile());
  CHECK(api.lines() == std::vector<std::string>{"GET " + kPlacementWebhooks});
}

TEST_CASE("pods are left to the controller that manages JobSets") {
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kShare;
  PlacementFixture world(options);
  world.seen(leader());
  world.exists({leader(), pod(1, "r2")});
  REQUIRE(world.reconcile());
  CHECK(world.api.log().empty());
}

TEST_CASE_METHOD(PlacementFixture, "where a read fails nothing is deleted, and it is tried again") {
  seen(leader());
  api.on("GET", kPlacementWebhooks).answer(200, "{}").always();
  CHECK_FALSE(reconcile());  // the pods
  api.on("GET", kPodsPath)
      .answer(200, kube::print_json(
                       Json::object({{"metadata", Json::object({{"resourceVersion", "99"}})},
                                     {"items", Json::array({leader(), pod(1, "r2")})}})))
      .always();
  const auto without_node = reconcile();
  REQUIRE_FALSE(without_node);
  CHECK(without_node.error().message == "leader topology is unknown (node not found)");
  CHECK(writes().empty());
}
