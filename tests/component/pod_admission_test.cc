// Reviews of pods under exclusive placement: requests to the API server, and answers.
#include <fmt/format.h>

#include "controller/admission/webhook.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "tests/component/admission_fixture.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using namespace trainer::test;
using kube::Json;

namespace {

constexpr const char* kTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology";
constexpr const char* kTeamPodsPath = "/api/v1/namespaces/team-a/pods";
constexpr const char* kQuery =
    "labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3Ds%2Cjobset.sigs.k8s.io%2Freplicatedjob-name"
    "%3Dw%2Cjobset.sigs.k8s.io%2Fjob-index%3D0%2Cbatch.kubernetes.io%2Fjob-completion-index%3D0"
    "&limit=500";

// Makes a pod like the Job controller: without a namespace, and with a generateName.
Json pod_of_team(const std::string& index) {
  return *kube::parse_json(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"generateName":"s-w-0-{0}-",
      "labels":{{"jobset.sigs.k8s.io/jobset-name":"s","jobset.sigs.k8s.io/replicatedjob-name":"w",
        "jobset.sigs.k8s.io/job-index":"0","jobset.sigs.k8s.io/job-key":"key",
        "batch.kubernetes.io/job-completion-index":"{0}"}},
      "annotations":{{"jobset.sigs.k8s.io/jobset-name":"s","{1}":"rack",
        "batch.kubernetes.io/job-completion-index":"{0}"}},
      "ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"s-w-0","uid":"job",
        "controller":true}}]}},"spec":{{"priority":0}}}})",
      index, kTopology));
}

Json selecting(Json from, const char* rack) {
  from["spec"]["nodeSelector"] = Json::object({{"rack", rack}});
  return from;
}

struct PodAdmissionFixture : AdmissionFixture {
  using AdmissionFixture::AdmissionFixture;
  // The leader as it is listed, together with another pod whose labels are the same; "" for no
  // node.
  void exists(const std::string& node) {
    Json leader = pod_of_team("0");
    leader["metadata"].set("name", "s-w-0-0-abcde").set("uid", "leader");
    if (!node.empty()) leader["spec"].set("nodeName", node);
    Json other = leader;
    other["metadata"].set("name", "debug-s-w-0-0-abcde");
    const Json list = Json::object({{"kind", "PodList"},
                                    {"apiVersion", "v1"},
                                    {"metadata", Json::object({{"resourceVersion", "9"}})},
                                    {"items", Json::array({leader, other})}});
    api.on("GET", kTeamPodsPath).answer(200, kube::print_json(list)).always();
    api.on("GET", "/api/v1/nodes/n1")
        .answer(200, R"({"kind":"Node","metadata":{"name":"n1","labels":{"rack":"r1"}}})")
        .always();
  }

  // The answer's JSON Patch; null without one.
  Json patch_for(const Json& object) {
    const Json response = ask(kMutatePod, review_of(object));
    REQUIRE(response.get_bool("allowed"));
    if (!response.find("patch")) return Json();
    return *kube::parse_json(*kube::base64_decode(response.get_string("patch")));
  }

  // "CODE message", or "" where the pod is allowed.
  std::string refusal(std::string_view path, const Json& object) {
    const Json response = ask(path, review_of(object));
    if (response.get_bool("allowed")) return {};
    const Json& status = *response.find("status");
    return fmt::format("{} {}", status.get_int("code"), status.get_string("message"));
  }
};

std::string printed(const Json& patch) {
  return kube::print_json(patch);
}

}  // namespace

TEST_CASE_METHOD(PodAdmissionFixture, "pods that are not followers cost no request") {
  Json plain = pod_of_team("1");
  plain["metadata"]["annotations"].erase(kTopology);
  CHECK(printed(patch_for(plain)).find("jobset.sigs.k8s.io~1priority") != std::string::npos);
  CHECK(printed(patch_for(pod_of_team("0"))).find("podAntiAffinity") != std::string::npos);
  Json prepared = pod_of_team("1");
  prepared["metadata"]["annotations"].set("alpha.jobset.sigs.k8s.io/node-selector", "true");
  CHECK(patch_for(prepared).is_null());
  for (const Json& each : {plain, pod_of_team("0"), prepared})
    CHECK(refusal(kValidatePod, each).empty());
  CHECK(refusal(kValidatePod, pod_of_team("1")) == "403 follower pod node selector not set");
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(PodAdmissionFixture,
                 "a follower gets a node selector for the domain of its leader's node") {
  exists("n1");
  const std::string patch = printed(patch_for(pod_of_team("1")));
  CHECK(patch.find("nodeSelector") != std::string::npos);
  CHECK(patch.find("\"r1\"") != std::string::npos);
  // The patch must not change fields that the API server sets.
  CHECK(patch.find("namespace") == std::string::npos);
  CHECK(api.lines() == std::vector<std::string>{std::string("GET ") + kTeamPodsPath + "?" + kQuery,
                                                "GET /api/v1/nodes/n1"});
  CHECK(refusal(kValidatePod, selecting(pod_of_team("1"), "r1")).empty());
  CHECK(api.log().size() == 3);
}

TEST_CASE_METHOD(PodAdmissionFixture, "a follower waits until its leader has a node") {
  exists("");
  CHECK(printed(patch_for(pod_of_team("1"))).find("nodeSelector") == std::string::npos);
  CHECK(refusal(kValidatePod, selecting(pod_of_team("1"), "r1")) ==
        "403 leader pod not yet scheduled, not creating follower pod. this is an expected, "
        "transient error");
  const std::lock_guard lock(mutex);
  CHECK(outcomes == std::map<std::string, int>{{"allowed", 1}, {"denied", 1}});
}

TEST_CASE_METHOD(PodAdmissionFixture,
                 "what the leader's node lacks is said; a failed lookup may be tried again") {
  exists("n2");
  CHECK(refusal(kMutatePod, pod_of_team("1")) == "404 node n2 not found");
  api.on("GET", "/api/v1/nodes/n2").answer(200, R"({"kind":"Node","metadata":{"name":"n2"}})");
  CHECK(refusal(kMutatePod, pod_of_team("1")) == "403 node does not have topology label: rack");
  api.on("GET", "/api/v1/nodes/n2")
      .answer(
          403,
          R"({"kind":"Status","status":"Failure","message":"not for you","reason":"Forbidden","code":403})");
  const std::string refused = refusal(kMutatePod, pod_of_team("1"));
  CHECK(refused.substr(0, 4) == "500 ");
  CHECK(refused.find("not for you") != std::string::npos);
}

TEST_CASE_METHOD(PodAdmissionFixture, "invalid labels are never put into a request") {
  Json odd = pod_of_team("1");
  odd["metadata"]["labels"].set("jobset.sigs.k8s.io/jobset-name", "s,a in (b)");
  CHECK(refusal(kValidatePod, selecting(odd, "r1")).find("got 0") != std::string::npos);
  CHECK(api.log().empty());
  // An older cluster has the index as an annotation only: all pods of the Job are listed.
  Json unlabelled = pod_of_team("1");
  unlabelled["metadata"]["labels"].erase("batch.kubernetes.io/job-completion-index");
  exists("n1");
  CHECK(printed(patch_for(unlabelled)).find("nodeSelector") != std::string::npos);
  CHECK(api.lines().front().find("completion-index") == std::string::npos);
}

TEST_CASE_METHOD(PodAdmissionFixture, "pods of any shape are answered without a crash") {
  for (const char* text :
       {"7", "[]", "{}", R"({"kind":"Pod","metadata":7,"spec":[]})",
        R"({"metadata":{"labels":[],"annotations":{"jobset.sigs.k8s.io/jobset-name":1,
            "alpha.jobset.sigs.k8s.io/exclusive-topology":{}}},"spec":7})",
        R"({"metadata":{"labels":7,"annotations":{"jobset.sigs.k8s.io/jobset-name":"s",
            "batch.kubernetes.io/job-completion-index":"0",
            "alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"}},
            "spec":{"priority":"x","affinity":[{"podAffinity":3}]}})"}) {
    CAPTURE(text);
    const Json object = *kube::parse_json(text);
    for (const std::string_view path : {kMutatePod, kValidatePod}) {
      for (const Json& old_object : {Json(), object}) {
        const auto answer = send("POST", path, review_of(object, old_object));
        REQUIRE(answer);
        CHECK(answer->status < 500);
      }
    }
  }
  CHECK(api.log().empty());
}

TEST_CASE("pods are left to the upstream controller while it runs") {
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kShare;
  PodAdmissionFixture shared(options);
  CHECK(shared.patch_for(pod_of_team("0")).is_null());
  CHECK(shared.refusal(kValidatePod, pod_of_team("1")).empty());
}
