// Exclusive placement: U17 to U19, and what the pod webhooks answer.
#include "runtimes/jobset/exclusive.hh"

#include <fmt/format.h>

#include "kube/model/json_text.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer;
using namespace trainer::jobset;
using kube::Json;

namespace {

constexpr const char* kTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology";
constexpr const char* kSelector = "alpha.jobset.sigs.k8s.io/node-selector";
constexpr const char* kIndex = "batch.kubernetes.io/job-completion-index";

// Pod `index` of s-w-0 under exclusive placement by rack.
Json pod(const char* index) {
  return *kube::parse_json(
      fmt::format(R"({{"metadata":{{"name":"s-w-0-{0}-abcde","namespace":"n","uid":"p{0}",
    "resourceVersion":"5","labels":{{"jobset.sigs.k8s.io/jobset-name":"s","jobset.sigs.k8s.io/replicatedjob-name":"w",
      "jobset.sigs.k8s.io/job-index":"0","jobset.sigs.k8s.io/job-key":"key"}},
    "annotations":{{"jobset.sigs.k8s.io/jobset-name":"s","{1}":"rack","{2}":"{0}"}},
    "ownerReferences":[{{"kind":"Job","uid":"job","controller":true}}]}},"spec":{{"priority":7}}}})",
                  index, kTopology, kIndex));
}

LeaderPod leader(std::string node = "n1", std::string owner = "job",
                 std::string phase = "Pending") {
  return {"s-w-0-0-abcde", std::move(owner), std::move(node), std::move(phase), false};
}

// Node n1 is in rack r1, n2 in none.
PlacementLookups lookups(std::vector<LeaderPod> leaders) {
  PlacementLookups result;
  result.leaders = [leaders](const std::string& ns, const std::string& base) {
    CHECK(ns == "n");
    CHECK(base == "s-w-0-0");
    return leaders;
  };
  result.node_labels = [](const std::string& node) -> std::optional<kube::StringMap> {
    if (node == "n1") return kube::StringMap{{"rack", "r1"}};
    if (node == "n2") return kube::StringMap{};
    return std::nullopt;
  };
  return result;
}

Json placed(const Json& from, std::vector<LeaderPod> leaders = {}) {
  auto result = place_pod(from, lookups(std::move(leaders)));
  INFO((result ? std::string() : result.error().message));
  REQUIRE(result.has_value());
  return *result;
}

Json with_priority_label(Json from) {
  from["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] = "7";
  return from;
}

std::string denial(const Json& from, std::vector<LeaderPod> leaders = {}) {
  return deny_pod(from, lookups(std::move(leaders))).value_or("");
}

}  // namespace

TEST_CASE("U17: pods that are left alone") {
  Json foreign = pod("0");
  foreign["metadata"]["annotations"].erase("jobset.sigs.k8s.io/jobset-name");
  CHECK(placed(foreign) == foreign);
  CHECK(denial(foreign).empty());

  Json on_labelled_nodes = pod("1");
  on_labelled_nodes["metadata"]["annotations"][kSelector] = "true";
  CHECK(placed(on_labelled_nodes) == on_labelled_nodes);
  CHECK(denial(on_labelled_nodes).empty());

  Json plain = pod("1");
  plain["metadata"]["annotations"].erase(kTopology);
  CHECK(placed(plain) == with_priority_label(plain));
  CHECK(denial(plain).empty());
  plain["spec"].erase("priority");
  CHECK(placed(plain) == plain);
}

TEST_CASE("U17: a leader gets affinity to its own Job and away from others of its priority") {
  Json from = pod("0");
  const Json existing = *kube::parse_json(
      R"({"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"own"}]}})");
  from["spec"]["affinity"] = existing;
  const Json result = placed(from);
  CHECK(*result.find_path({"spec", "affinity"}) == *kube::parse_json(R"({
    "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"own"},
      {"labelSelector":{"matchExpressions":[
        {"key":"jobset.sigs.k8s.io/job-key","operator":"In","values":["key"]}]},
       "topologyKey":"rack","namespaceSelector":{}}]},
    "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"labelSelector":{"matchExpressions":[
        {"key":"jobset.sigs.k8s.io/job-key","operator":"Exists"},
        {"key":"jobset.sigs.k8s.io/job-key","operator":"NotIn","values":["key"]},
        {"key":"jobset.sigs.k8s.io/priority","operator":"In","values":["7"]}]},
       "topologyKey":"rack","namespaceSelector":{}}]}})"));
  CHECK(denial(from).empty());

  Json without_priority = pod("0");
  without_priority["spec"].erase("priority");
  const Json unequal = placed(without_priority);
  const Json& term = unequal.find_path({"spec", "affinity", "podAntiAffinity"})
                         ->get_array("requiredDuringSchedulingIgnoredDuringExecution")[0];
  CHECK(*term.find("labelSelector")->get_array("matchExpressions")[2].find("values") ==
        Json::array({""}));
}

TEST_CASE("U17: a follower goes where its leader is") {
  const Json follower = pod("1");
  CHECK(placed(follower, {leader("")}) == with_priority_label(follower));
  CHECK(placed(follower, {}) == with_priority_label(follower));

  Json expected = with_priority_label(follower);
  expected["spec"]["nodeSelector"] = Json::object({{"rack", "r1"}});
  CHECK(placed(follower, {leader()}) == expected);
  Json unnumbered = pod("1");
  unnumbered["metadata"]["annotations"].erase(kIndex);
  CHECK(placed(unnumbered, {leader()}).find_path({"spec", "nodeSelector", "rack"}));

  const auto gone = place_pod(follower, lookups({leader("n9")}));
  REQUIRE_FALSE(gone.has_value());
  CHECK(gone.error().code == kube::ErrorCode::kNotFound);
  const auto unlabelled = place_pod(follower, lookups({leader("n2")}));
  REQUIRE_FALSE(unlabelled.has_value());
  CHECK(unlabelled.error().message == "node does not have topology label: rack");
}

TEST_CASE("U18: which followers are refused, and why") {
  const auto selecting = [](const char* key) {
    Json follower = pod("1");
    follower["spec"]["nodeSelector"] = Json::object({{key, "r1"}});
    return follower;
  };
  const std::string waiting =
      "leader pod not yet scheduled, not creating follower pod. this is an expected, transient "
      "error";
  const auto count = [](int number) {
    return fmt::format(
        "expected 1 leader pod (s-w-0-0), but got {}. this is an expected, transient error",
        number);
  };
  LeaderPod terminating = leader();
  terminating.is_deleting = true;
  CHECK(denial(pod("1"), {leader()}) == "follower pod node selector not set");
  CHECK(denial(selecting("zone"), {leader()}) ==
        "follower pod node selector for topology domain not found. missing selector: rack");
  CHECK(denial(selecting("rack"), {leader()}).empty());
  CHECK(denial(selecting("rack"), {leader("")}) == waiting);
  CHECK(denial(selecting("rack"), {}) == count(0));
  CHECK(denial(selecting("rack"), {leader(), leader()}) == count(2));
  CHECK(denial(selecting("rack"), {terminating, leader("n1", "job", "Failed"),
                                   leader("n1", "job", "Succeeded")}) == count(0));
  CHECK(denial(selecting("rack"), {terminating, leader()}).empty());
  CHECK(denial(selecting("rack"), {leader("n1", "old")}) ==
        "follower pod owner UID (job) != leader pod owner UID (old)");
  CHECK(denial(selecting("rack"), {leader("n1", "")}) ==
        "leader pod \"s-w-0-0-abcde\" has no owner reference");
  Json orphan = selecting("rack");
  orphan["metadata"].erase("ownerReferences");
  CHECK(denial(orphan, {leader()}) == "follower pod has no owner reference");
  Json unlabelled = selecting("rack");
  unlabelled["metadata"]["labels"].erase("jobset.sigs.k8s.io/job-index");
  CHECK(denial(unlabelled, {leader()}) == "pod missing label: jobset.sigs.k8s.io/job-index");
}

TEST_CASE("U19: misplaced followers are marked and deleted") {
  const kube::Time now = kube::Time::from_seconds(1'800'000'000);
  Json head = pod("0");
  head["spec"]["nodeName"] = "n1";
  Json good = pod("1");
  good["spec"]["nodeSelector"] = Json::object({{"rack", "r1"}});
  Json wrong = pod("2");
  wrong["spec"]["nodeSelector"] = Json::object({{"rack", "r2"}});
  wrong["status"]["conditions"] =
      Json::array({Json::object({{"type", "Ready"}, {"status", "True"}})});
  const Json malformed = pod("3");
  Json foreign = pod("4");
  foreign["metadata"]["ownerReferences"].as_array()[0]["uid"] = "other";

  const auto repair = [&](const Json& of, const std::vector<Json>& pods) {
    return repair_placement(of, pods, lookups({}), now);
  };
  CHECK(repair(head, {head, good, foreign})->empty());

  for (const Json& bad : {wrong, malformed}) {
    const auto actions = repair(head, {head, good, bad, foreign});
    REQUIRE(actions.has_value());
    // All followers of the Job move together; neither the leader nor another Job's pods do.
    REQUIRE(actions->size() == 4);
    const kube::Action& mark = (*actions)[2];
    CHECK(mark.verb == kube::Action::Verb::kMergePatch);
    CHECK(mark.subresource == "status");
    CHECK(mark.key.name == bad.find("metadata")->get_string("name"));
    const Json& added = mark.body.find("status")->get_array("conditions").back();
    CHECK(added.get_string("type") == "DisruptionTarget");
    CHECK(added.get_string("reason") == "ExclusivePlacementViolation");
    CHECK(added.get_string("message") == "Pod violated JobSet exclusive placement policy");
    const kube::Action& removal = (*actions)[3];
    CHECK(removal.verb == kube::Action::Verb::kDelete);
    CHECK(removal.propagation == "Background");
    CHECK(removal.stage > mark.stage);
  }
  // A pod that is being deleted causes no deletion of others, and is not deleted again.
  Json going = wrong;
  going["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  Json failed = wrong;
  failed["status"]["phase"] = "Failed";
  CHECK(repair(head, {head, good, going, failed})->empty());
  // The other conditions stay.
  CHECK((*repair(head, {wrong}))[0].body.find("status")->get_array("conditions").size() == 2);
  wrong["status"]["conditions"] =
      Json::array({Json::object({{"type", "DisruptionTarget"}, {"status", "True"}})});
  CHECK(repair(head, {wrong})->size() == 1);
}

TEST_CASE("U19: what is not known deletes nothing") {
  const kube::Time now;
  Json head = pod("0");
  CHECK_FALSE(is_scheduled_leader(head));
  CHECK(repair_placement(head, {pod("1")}, lookups({}), now)->empty());
  head["spec"]["nodeName"] = "n9";
  CHECK(is_scheduled_leader(head));
  Json over = head;
  over["status"]["phase"] = "Succeeded";
  CHECK_FALSE(is_scheduled_leader(over));
  const auto unknown = repair_placement(head, {pod("1")}, lookups({}), now);
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().message == "leader topology is unknown (node not found)");
  head["spec"]["nodeName"] = "n2";
  CHECK(repair_placement(head, {pod("1")}, lookups({}), now).error().message ==
        "node does not have topology label: rack");
  head["metadata"]["labels"].erase("jobset.sigs.k8s.io/job-key");
  CHECK_FALSE(repair_placement(head, {pod("1")}, lookups({}), now).has_value());
  // Nodes are labelled beforehand: followers have no selector for a domain, and need none.
  Json labelled = pod("0");
  labelled["spec"]["nodeName"] = "n1";
  labelled["metadata"]["annotations"][kSelector] = "true";
  CHECK_FALSE(is_scheduled_leader(labelled));
}

TEST_CASE("U18: how a leader is found") {
  CHECK(*leader_selector(pod("1")) ==
        "jobset.sigs.k8s.io/jobset-name=s,jobset.sigs.k8s.io/replicatedjob-name=w,"
        "jobset.sigs.k8s.io/job-index=0");
  Json numbered = pod("1");
  numbered["metadata"]["labels"][kIndex] = "1";
  CHECK(leader_selector(numbered)->ends_with(",batch.kubernetes.io/job-completion-index=0"));
  for (const char* value : {"a,b", "a in (b)", "a=b", "!"}) {
    Json odd = pod("1");
    odd["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] = value;
    CHECK_FALSE(leader_selector(odd));
  }

  Json head = pod("0");
  head["spec"]["nodeName"] = "n1";
  head["status"]["phase"] = "Running";
  const auto read = read_leader(head, "s-w-0-0");
  REQUIRE(read);
  CHECK(read->name == "s-w-0-0-abcde");
  CHECK(read->owner_uid == "job");
  CHECK(read->node == "n1");
  CHECK(read->phase == "Running");
  CHECK_FALSE(read->is_deleting);
  CHECK_FALSE(read_leader(head, "s-w-0"));
  CHECK_FALSE(read_leader(pod("1"), "s-w-0-0"));
  CHECK_FALSE(read_leader(Json(), ""));
  head["metadata"]["annotations"].erase(kTopology);
  CHECK_FALSE(read_leader(head, "s-w-0-0"));
}
