#include "kube/manager/cache_set.hh"

#include <algorithm>

#include "kube/model/json_text.hh"

namespace kube {
namespace {

bool matches(std::string_view requirement, const StringMap& labels) {
  const auto at = requirement.find('=');
  if (at == std::string_view::npos) {
    const bool is_negated = requirement.starts_with('!');
    return labels.contains(std::string(requirement.substr(is_negated))) != is_negated;
  }
  const bool is_negated = at > 0 && requirement[at - 1] == '!';
  const auto found = labels.find(std::string(requirement.substr(0, at - is_negated)));
  return (found != labels.end() && found->second == requirement.substr(at + 1)) != is_negated;
}

bool selects(std::string_view selector, std::string_view object) {
  if (selector.empty()) return true;
  static const JsonFilter kLabels{"",
                                  JsonFilter::Members::kInclude,
                                  {{"metadata", JsonFilter::Members::kInclude, {{"labels"}}}}};
  const auto parsed = parse_json(object, kObjectLimits, kLabels);
  if (!parsed) return false;
  const StringMap labels = ObjectMeta::of(*parsed).labels;
  while (!selector.empty()) {
    const auto comma = std::min(selector.find(','), selector.size());
    if (!matches(selector.substr(0, comma), labels)) return false;
    selector.remove_prefix(std::min(comma + 1, selector.size()));
  }
  return true;
}

}  // namespace

AnyObjectCache& CacheSet::add(const Collection& collection, const MakeCache& make,
                              bool is_required) {
  if (Entry* const entry = find(collection)) {
    entry->is_required = entry->is_required || is_required;
    return *entry->cache;
  }
  entries_.push_back(std::make_unique<Entry>(Entry{collection, make(), is_required}));
  return *entries_.back()->cache;
}

CacheSet::Entry* CacheSet::find(const Collection& collection) const {
  const auto at = std::ranges::find(entries_, collection,
                                    [](const auto& entry) -> auto& { return entry->collection; });
  return at == entries_.end() ? nullptr : at->get();
}

void CacheSet::update_if_newer(const Resource& resource, std::string_view answer) {
  for (const auto& entry : entries_) {
    if (entry->collection.resource != resource) continue;
    // The answer to a delete is the object with its deletionTimestamp, its last state, or a Status.
    // Only the watch event is final.
    if (scan_string(answer, "kind") != resource.kind) return;
    if (selects(entry->collection.label_selector, answer)) entry->cache->update_if_newer(answer);
  }
}

bool CacheSet::are_synced() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry->cache->is_synced() || (entry->is_unserved && !entry->is_required);
  });
}

bool CacheSet::is_interrupted(const Resource& resource) const {
  return std::any_of(entries_.begin(), entries_.end(), [&resource](const auto& entry) {
    return entry->is_interrupted && entry->collection.resource == resource;
  });
}

}  // namespace kube
