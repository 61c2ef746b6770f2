#include "api/describe/elastic_rules.hh"

#include <algorithm>
#include <string>

namespace trainer::wire {
namespace {

using kube::Json;

constexpr std::string_view kTrainer = ".spec.trainer";
// All members of spec.trainer but numNodes.
constexpr std::string_view kFixed[] = {"image", "command",          "args",
                                       "env",   "resourcesPerNode", "numProcPerNode"};

bool is_elastic(const Json& job) {
  return job.find_path({"status", "elastic"}) != nullptr;
}

bool has_trainer(const Json& job) {
  return job.find_path({"spec", "trainer"}) != nullptr;
}

// Returns the condition that a member is absent from both, or the same in both. The API server
// estimates the cost of a comparison by its types, which it does not know of optional values
// (`?.`).
std::string same_member(std::string_view name) {
  const std::string now = "self.spec.trainer." + std::string(name);
  const std::string before = "oldSelf.spec.trainer." + std::string(name);
  return "(has(" + now + ") ? has(" + before + ") && " + now + " == " + before + " : !has(" +
         before + "))";
}

// With a trainer in both objects, it is equal, or the job is elastic and all fixed members are
// equal. Otherwise the job is not elastic, or it gets a trainer without fixed members.
std::string make_trainer_rule() {
  const std::string elastic = "has(oldSelf.status) && has(oldSelf.status.elastic)";
  std::string same = elastic;
  std::string none = "!has(self.spec.trainer) || ";
  for (const std::string_view name : kFixed) {
    same += " && " + same_member(name);
    none += (name == kFixed[0] ? "" : " && ");
    none += "!has(self.spec.trainer." + std::string(name) + ")";
  }
  return "!has(self.spec) || !has(oldSelf.spec) || "
         "(has(self.spec.trainer) && has(oldSelf.spec.trainer) ? "
         "self.spec.trainer == oldSelf.spec.trainer || " +
         same + " : !(" + elastic + ") || !has(oldSelf.spec.trainer) && (" + none + "))";
}

bool keeps_trainer(const Json& job, const Json& before, const Same& same) {
  const bool is_in_both = has_trainer(job) && has_trainer(before);
  if (is_in_both && same({"spec", "trainer"})) return true;
  if (!is_elastic(before)) return !is_in_both;
  if (has_trainer(before) && !has_trainer(job)) return false;
  return std::ranges::all_of(kFixed, [&same](std::string_view name) {
    return same({"spec", "trainer", name});
  });
}

bool keeps_bounds(const Json& job, const Json& before, const Same& same) {
  const Json* const elastic = before.find_path({"status", "elastic"});
  if (elastic == nullptr || same({"spec", "trainer", "numNodes"})) return true;
  const Json* const nodes = job.find_path({"spec", "trainer", "numNodes"});
  return nodes != nullptr && nodes->is_int() && elastic->get_int("minNodes") <= nodes->as_int() &&
         nodes->as_int() <= elastic->get_int("maxNodes");
}

bool keeps_part(const Json& job, const Json& before, const Same&) {
  return before.find_path({"status", "startTime"}) == nullptr || is_elastic(before) ||
         has_trainer(job) == has_trainer(before);
}

}  // namespace

Rule trainer_stays() {
  static const std::string kRule = make_trainer_rule();
  return {.cel = kRule,
          .message = "field is immutable",
          .field_path = kTrainer,
          .keeps = keeps_trainer};
}

Rule nodes_stay_within_bounds() {
  return {.cel =
              "!oldSelf.?status.elastic.hasValue() || "
              "self.?spec.trainer.numNodes == oldSelf.?spec.trainer.numNodes || "
              "self.?spec.trainer.numNodes.hasValue() && "
              "oldSelf.status.elastic.minNodes <= self.spec.trainer.numNodes && "
              "self.spec.trainer.numNodes <= oldSelf.status.elastic.maxNodes",
          .message =
              "numNodes of an elastic job must stay between status.elastic.minNodes and "
              "maxNodes",
          .field_path = kTrainer,
          .keeps = keeps_bounds};
}

Rule trainer_is_not_added() {
  return {.cel =
              "!oldSelf.?status.startTime.hasValue() || oldSelf.?status.elastic.hasValue() || "
              "self.?spec.trainer.hasValue() == oldSelf.?spec.trainer.hasValue()",
          .message =
              "once the job has run it can be neither added nor removed: create the "
              "TrainJob again",
          .field_path = kTrainer,
          .keeps = keeps_part};
}

}  // namespace trainer::wire
