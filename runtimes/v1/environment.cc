#include "runtimes/v1/environment.hh"

#include <algorithm>
#include <utility>

#include "kube/model/expansion.hh"

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

}  // namespace trainer::v1
