// Followers that stand elsewhere than their leader, against a scripted API server.
#include <fmt/format.h>

#include "controller/core/placement_reconciler.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/listeners.hh"
#include "tests/component/peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kPodsPath = "/api/v1/namespaces/n/pods";
const std::string kWebhooks =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "pods.jobset.trainer.kubeflow.org";

// Pod `index` of s-w-0, on no node yet, sent to `rack`.
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

struct Fixture : trainer::test::ScriptedPeer {
  std::vector<std::string> told;
  Stores stores{listeners()};
  Executor executor{io, client, stores, log, 8};
  JobSetOwnership ownership{JobSetControllerMode::kOwn};

  Stores::Listeners listeners() {
    Stores::Listeners all = trainer::test::deaf_listeners();
    all.leader = [this](const kube::ObjectKey& key) { told.push_back(key.to_string()); };
    return all;
  }

  void seen(const Json& object) { REQUIRE(stores.pods.upsert(kube::print_json(object))); }

  // What the API server has: our webhooks, node n1 in rack r1, and these pods.
  void exists(const std::vector<Json>& pods) {
    Json::Array items(pods.begin(), pods.end());
    api.on("GET", kWebhooks).answer(200, "{}").always();
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

  kube::Result<Requeue> reconcile() {
    PlacementReconciler reconciler(stores, client, executor, ownership, log);
    return kube::run_task(io, reconciler.reconcile({"n", "s-w-0-0-abcde"}));
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

TEST_CASE_METHOD(Fixture, "only a leader that moved is looked at") {
  seen(pod(0));
  seen(pod(1, "r1"));
  CHECK(told.empty());
  seen(leader("20"));
  CHECK(told == std::vector<std::string>{"n/s-w-0-0-abcde"});
  Json annotated = leader("21");
  annotated["metadata"]["annotations"].set("example.com/looked-at", "yes");
  seen(annotated);
  CHECK(told.size() == 1);
  Json running = leader("22");
  running["status"].set("phase", "Running");
  seen(running);
  CHECK(told.size() == 2);
  // One that is over says nothing about where the others belong.
  Json failed = leader("23");
  failed["status"].set("phase", "Failed");
  seen(failed);
  CHECK(told.size() == 2);

  Json prepared = leader("30");
  prepared["metadata"]["annotations"].set("alpha.jobset.sigs.k8s.io/node-selector", "true");
  Json plain = leader("31");
  plain["metadata"]["annotations"].erase("alpha.jobset.sigs.k8s.io/exclusive-topology");
  seen(prepared);
  seen(plain);
  CHECK(told.size() == 2);
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(Fixture, "followers that stand right cost three reads and no write") {
  seen(leader());
  exists({leader(), pod(1, "r1")});
  REQUIRE(reconcile());
  CHECK(writes().empty());
  CHECK(api.log().size() == 3);
}

TEST_CASE_METHOD(Fixture, "misplaced followers are marked, and then deleted") {
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

TEST_CASE_METHOD(Fixture, "a follower that is already going takes no other along") {
  seen(leader());
  Json going = pod(2, "r2");
  going["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
  Json failed = pod(3, "r2");
  failed["status"].set("phase", "Failed");
  exists({leader(), pod(1, "r1"), going, failed});
  REQUIRE(reconcile());
  CHECK(writes().empty());
}

TEST_CASE_METHOD(Fixture, "without our webhooks nothing is read or deleted") {
  seen(leader());
  REQUIRE(reconcile());
  CHECK(api.lines() == std::vector<std::string>{"GET " + kWebhooks});
}

TEST_CASE_METHOD(Fixture, "pods are left to the controller that expands JobSets") {
  ownership = JobSetOwnership(JobSetControllerMode::kShare);
  seen(leader());
  exists({leader(), pod(1, "r2")});
  REQUIRE(reconcile());
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(Fixture, "what is not known deletes nothing and is tried again") {
  seen(leader());
  api.on("GET", kWebhooks).answer(200, "{}").always();
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
