#include "runtimes/v1/environment.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kube/model/check_items.hh"
#include "kube/model/expansion.hh"
#include "kube/model/field_error.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

}  // namespace

void Environment::put(Variable variable) {
  const std::size_t before = index_of(variable.name);
  if (before < variables_.size())
    variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(before));
  variables_.push_back(std::move(variable));
}

void Environment::set(std::string_view name, std::string value) {
  const bool has_references = !kube::references_in(value).empty();
  put({std::string(name), Json::object({{"name", name}, {"value", std::move(value)}}),
       has_references});
}

void Environment::set_from(std::string_view name, Json source) {
  put({std::string(name), Json::object({{"name", name}, {"valueFrom", std::move(source)}}), false});
}

std::size_t Environment::index_of(std::string_view name) const {
  const auto found =
      std::find_if(variables_.begin(), variables_.end(),
                   [name](const Variable& variable) { return variable.name == name; });
  return static_cast<std::size_t>(found - variables_.begin());
}

std::vector<std::size_t> Environment::places(const Json::Array& own,
                                             const std::vector<std::size_t>& replaced) const {
  std::vector<std::size_t> places(variables_.size(), own.size());
  for (std::size_t i = own.size(); i-- > 0;)
    if (replaced[i] < variables_.size()) places[replaced[i]] = i;
  for (std::size_t at = 0; at < variables_.size(); ++at) {
    if (!variables_[at].has_references) continue;
    for (const std::string_view name :
         kube::references_in(variables_[at].entry.get_string("value"))) {
      const std::size_t other = index_of(name);
      if (other == at) continue;
      if (other < at) {
        // A variable without references of its own can be anywhere.
        if (!variables_[other].has_references) places[other] = std::min(places[other], places[at]);
        places[at] = std::max(places[at], places[other]);
        continue;
      }
      for (std::size_t i = 0; i < own.size(); ++i)
        if (own[i].get_string("name") == name) places[at] = std::max(places[at], i + 1);
    }
  }
  return places;
}

void Environment::add_to(Json& container) const {
  if (variables_.empty()) return;
  Json::Array own;
  if (Json* env = container.find("env"); env != nullptr && env->is_array())
    own = std::move(env->as_array());
  std::vector<std::size_t> replaced;
  bool has_places = false;
  for (const Json& variable : own) {
    replaced.push_back(index_of(variable.get_string("name")));
    has_places |= replaced.back() < variables_.size();
  }
  const std::vector<std::size_t> comes_before = places(own, replaced);
  Json::Array all;
  all.reserve(own.size() + variables_.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (has_places)
      for (std::size_t at = 0; at < variables_.size(); ++at)
        if (comes_before[at] == i) all.push_back(variables_[at].entry);
    if (replaced[i] == variables_.size()) all.push_back(std::move(own[i]));
  }
  for (std::size_t at = 0; at < variables_.size(); ++at)
    if (comes_before[at] == own.size()) all.push_back(variables_[at].entry);
  container.set("env", std::move(all));
}

std::vector<std::string_view> replaced_variables(const Json& own, const Json& built) {
  std::map<std::string_view, std::pair<int, const Json*>> in_pod;
  for (const Json& variable : built.get_array("env")) {
    auto& [count, last] = in_pod[variable.get_string("name")];
    ++count;
    last = &variable;
  }
  std::vector<std::string_view> names;
  for (const Json& variable : own.get_array("env")) {
    const std::string_view name = variable.get_string("name");
    const auto found = in_pod.find(name);
    // The user's own repetitions stay unchanged.
    if (found == in_pod.end() || found->second.first != 1 || *found->second.second == variable)
      continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> replaced_variable_texts(const Json& pod_template, const Json& pod,
                                                 std::string_view path) {
  std::vector<std::string> texts;
  const Json::Array& before = pod_template.get("spec").get_array("containers");
  const Json::Array& after = pod.get("spec").get_array("containers");
  const std::string containers = fmt::format("{}.containers", path);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const std::vector<std::string_view> names = replaced_variables(before[i], after[i]);
    if (names.empty()) continue;
    const bool is_one = names.size() == 1;
    texts.push_back(
        fmt::format("{}.env: {} {} no effect, because the controller sets {}; leave {} out",
                    kube::join_index(containers, i), fmt::join(names, ", "),
                    is_one ? "has" : "have", is_one ? "it" : "them", is_one ? "it" : "them"));
    if (texts.size() >= kube::kMaxWarnings) break;
  }
  return texts;
}

}  // namespace trainer::v1
