// The members that are read of a watched object are one list: the filter of the object's text and
// the values that its reader gets both come from it, so neither can have a member that the other
// lacks. Pure.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"

namespace trainer {

// `Members` is a struct of pointers, one for each member that is read.
template <class Members>
struct MemberRule {
  const kube::Json* Members::*member;
  std::vector<std::string_view> path;
  // These are the parts that are read of the member, or of each item of a list; if it is empty, all
  // of it is read.
  std::vector<kube::JsonFilter> below = {};
};

template <class Members>
using MemberRules = std::vector<MemberRule<Members>>;

// An absent member is a null value.
template <class Members>
Members find_members(const kube::Json& object, const MemberRules<Members>& rules) {
  Members found{};
  for (const MemberRule<Members>& rule : rules) {
    const kube::Json* at = &object;
    for (const std::string_view name : rule.path) at = &at->get(name);
    found.*rule.member = at;
  }
  return found;
}

template <class Members>
kube::JsonFilter filter_of(const MemberRules<Members>& rules) {
  using enum kube::JsonFilter::Members;
  kube::JsonFilter filter{"", kInclude, {}};
  for (const MemberRule<Members>& rule : rules) {
    kube::JsonFilter* at = &filter;
    for (const std::string_view name : rule.path) {
      at->members = kInclude;
      auto& below = at->below;
      auto next = std::find_if(below.begin(), below.end(),
                               [name](const kube::JsonFilter& one) { return one.name == name; });
      at = next == below.end() ? &below.emplace_back(kube::JsonFilter{name}) : &*next;
    }
    if (!rule.below.empty()) *at = {at->name, kInclude, rule.below};
  }
  return filter;
}

inline std::string_view text_of(const kube::Json& value) {
  return value.is_string() ? std::string_view(value.as_string()) : std::string_view();
}

}  // namespace trainer
