// The stacks of a stall are written once, and never at the cost of the job.
#include "runtimes/trainjob/stacks.hh"

#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Verb = kube::Action::Verb;

constexpr const char* kSavedAs = "ConfigMap/j-stacks";

World with_running_pods() {
  World world;
  world.settle();
  for (const std::int32_t index : {0, 1}) {
    PodSpec pod;
    pod.name = "j-node-0-" + std::to_string(index) + "-x";
    pod.index = index;
    pod.phase = "Running";
    pod.node_name = "worker-0";
    pod.is_ready = true;
    world.put_pod(pod);
  }
  world.settle();
  return world;
}

HeartbeatFacts stalled_with(std::uint64_t number, std::string bytes) {
  HeartbeatFacts facts;
  facts.stall.emplace();
  facts.stall->reason = "SamePlace";
  facts.stall->message = "all are at one line";
  facts.stacks = std::make_shared<const SavedStacks>(SavedStacks{number, std::move(bytes)});
  return facts;
}

std::string saved_bytes(const World& world) {
  const auto at = world.others.find(kSavedAs);
  if (at == world.others.end()) return "none";
  const Json& data = at->second.get("binaryData");
  return kube::base64_decode(data.get_string("stacks.json.gz")).value_or("bad");
}

TEST_CASE("the stacks of a stall are written once into a ConfigMap of the job", "[stall]") {
  World world = with_running_pods();
  const HeartbeatFacts facts = stalled_with(1, "first");
  world.heartbeats = &facts;
  const int reads = world.reads;
  const TrainJobPlan plan = world.reconcile();
  const kube::Action* const create = find_action(plan, Verb::kCreate, "ConfigMap");
  REQUIRE(create);
  CHECK(create->owner_uid == "job-uid");
  CHECK(create->failure_reason == "StacksNotSaved");
  CHECK(create->body.get("metadata").get_array("ownerReferences").size() == 1);
  CHECK(saved_bytes(world) == "first");
  CHECK(world.reads == reads + 1);

  // Nothing is read or written for a job that goes on to stall.
  const int requests = world.requests;
  world.settle();
  CHECK(world.reads == reads + 1);
  CHECK(world.requests == requests);
  CHECK(world.reason() == "Stalled");

  // Other stacks take their place.
  const HeartbeatFacts others = stalled_with(2, "second");
  world.heartbeats = &others;
  const TrainJobPlan again = world.reconcile();
  const kube::Action* const apply = find_action(again, Verb::kApply, "ConfigMap");
  REQUIRE(apply);
  CHECK(apply->body.get("metadata").get_string("uid") == std::string(kSavedAs) + "-uid");
  CHECK(saved_bytes(world) == "second");

  // They stay when the training goes on.
  const HeartbeatFacts runs;
  world.heartbeats = &runs;
  world.settle();
  CHECK_FALSE(world.status().find("stall"));
  CHECK(saved_bytes(world) == "second");
}

TEST_CASE("a ConfigMap of another owner is left alone", "[stall]") {
  World world = with_running_pods();
  world.others[kSavedAs] = yaml("{metadata: {name: j-stacks, uid: other}, data: {a: b}}");
  const HeartbeatFacts facts = stalled_with(1, "first");
  world.heartbeats = &facts;
  CHECK(world.reconcile().actions.empty());
  world.settle();
  CHECK(world.others[kSavedAs].get("data").get_string("a") == "b");
  CHECK(world.reason() == "Stalled");
}

TEST_CASE("stacks that could not be written are not tried again, and are no reason", "[stall]") {
  World world = with_running_pods();
  const HeartbeatFacts facts = stalled_with(1, "first");
  world.heartbeats = &facts;
  world.settle();
  world.others.erase(kSavedAs);
  world.refusal =
      kube::Refusal{kube::kConfigMaps, "exceeded quota", kube::ErrorCode::kForbidden, "j-stacks"};
  CHECK(world.reconcile().actions.empty());
  // Their refusal is not reported as that of what is written next.
  world.set_spec("suspend", true);
  world.reconcile();
  CHECK(world.reason() != "ChildRefused");
}

TEST_CASE("a job without a stall or without stacks writes none", "[stall]") {
  World world = with_running_pods();
  HeartbeatFacts facts = stalled_with(1, "first");
  facts.stall.reset();
  world.heartbeats = &facts;
  world.settle();
  CHECK(saved_bytes(world) == "none");
  facts = stalled_with(1, "first");
  facts.stacks.reset();
  world.settle();
  CHECK(world.reason() == "Stalled");
  CHECK(saved_bytes(world) == "none");
  // The missing ConfigMap does not count as a dependent object.
  CHECK(world.reconcile().actions.empty());
}

}  // namespace
}  // namespace trainer::test
