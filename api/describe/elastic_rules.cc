#include "api/describe/elastic_rules.hh"

#include <algorithm>
#include <string>

namespace trainer::wire {
namespace {

using kube::Json;

constexpr std::string_view kFixed[] = {"image", "command",          "args",
                                       "env",   "resourcesPerNode", "numProcPerNode"};

// Returns the condition that a member is absent from both, or the same in both.
std::string same_member(std::string_view name) {
  const std::string now = "self.spec.trainer." + std::string(name);
  const std::string before = "oldSelf.spec.trainer." + std::string(name);
  return "(has(" + now + ") ? has(" + before + ") && " + now + " == " + before + " : !has(" +
         before + "))";
}

std::string make_trainer_rule() {
  const std::string elastic = "has(oldSelf.status) && has(oldSelf.status.elastic)";
  std::string same;
  std::string none;
  for (const std::string_view name : kFixed) {
    same += " && " + same_member(name);
    none += " && !has(self.spec.trainer." + std::string(name) + ")";
  }
  return "!has(self.spec) || !has(oldSelf.spec) || "
         "(has(self.spec.trainer) && has(oldSelf.spec.trainer) ? "
         "self.spec.trainer == oldSelf.spec.trainer || " +
         elastic + same + " : !(" + elastic +
         ") || !has(oldSelf.spec.trainer) && (!has(self.spec.trainer)" + " || " + none.substr(4) +
         "))";
}

bool is_elastic_job(const Json& job) {
  return job.find_path({"status", "elastic"}) != nullptr;
}

// CEL compares a list that is a map without its order.
bool is_same_list(const Json& list, const Json& other) {
  if (!list.is_array() || !other.is_array() || list.size() != other.size()) return false;
  const Json::Array& others = other.as_array();
  return std::ranges::all_of(list.as_array(), [&others](const Json& item) {
    return std::ranges::find(others, item) != others.end();
  });
}

bool is_same(const Json& trainer, const Json& other, bool is_number_free) {
  if (trainer == other) return true;
  if (!trainer.is_object() || !other.is_object()) return false;
  Json left = trainer;
  Json right = other;
  if (is_number_free)
    for (Json* each : {&left, &right}) each->erase("numNodes");
  if (is_same_list(left.get("env"), right.get("env")))
    for (Json* each : {&left, &right}) each->erase("env");
  return left == right;
}

}  // namespace

std::string_view trainer_rule() {
  static const std::string kRule = make_trainer_rule();
  return kRule;
}

bool keeps_trainer(const Json& job, const Json& before) {
  const bool is_elastic = is_elastic_job(before);
  const Json* trainer = job.find_path({"spec", "trainer"});
  const Json* stored = before.find_path({"spec", "trainer"});
  if (!is_elastic && (trainer == nullptr || stored == nullptr)) return true;
  if (trainer == nullptr) return stored == nullptr;
  return is_same(*trainer, stored ? *stored : Json::object(), is_elastic);
}

bool keeps_part(const Json& job, const Json& before) {
  if (before.find_path({"status", "startTime"}) == nullptr || is_elastic_job(before)) return true;
  return (job.find_path({"spec", "trainer"}) == nullptr) ==
         (before.find_path({"spec", "trainer"}) == nullptr);
}

bool keeps_bounds(const Json& job, const Json& before) {
  const Json* elastic = before.find_path({"status", "elastic"});
  if (elastic == nullptr) return true;
  const Json* nodes = job.find_path({"spec", "trainer", "numNodes"});
  const Json* stored = before.find_path({"spec", "trainer", "numNodes"});
  if (nodes == nullptr || stored == nullptr) {
    if (nodes == stored) return true;
  } else if (*nodes == *stored) {
    return true;
  }
  return nodes != nullptr && nodes->is_int() && elastic->get_int("minNodes") <= nodes->as_int() &&
         nodes->as_int() <= elastic->get_int("maxNodes");
}

}  // namespace trainer::wire
