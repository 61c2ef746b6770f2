#include "kube/server/typed.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kube/model/json_text.hh"

namespace kube::server {
namespace {

using ListType = FieldSchema::ListType;

std::string field(std::string_view name) {
  return fmt::format("f:{}", name);
}

// Returns whether a value is owned, compared and replaced as one.
bool is_leaf(const Json& value, const FieldSchema& schema) {
  if (value.is_object()) return schema.is_atomic_object();
  return !value.is_array() || schema.list_type() == ListType::kAtomic;
}

// ---- fields

// These are the items of a list by their elements, in order. An element that several items have has
// all of them.
struct Items {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Json*>, std::less<>> by_element;

  Items(const Json* list, const FieldSchema& schema) {
    if (list == nullptr || !list->is_array()) return;
    for (const Json& item : list->as_array()) {
      auto element = element_of(item, schema);
      if (!element) continue;
      auto& same = by_element[*element];
      if (same.empty()) order.push_back(*element);
      same.push_back(&item);
    }
  }
  const std::vector<const Json*>& of(const std::string& element) const {
    static const std::vector<const Json*> kNone;
    const auto at = by_element.find(element);
    return at == by_element.end() ? kNone : at->second;
  }
};

FieldSet collect(const Json& value, const FieldSchema& schema) {
  FieldSet set;
  if (value.is_null()) return set;
  if (is_leaf(value, schema)) {
    set.insert_root();
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.as_object()) {
      FieldSet below = collect(member, schema.member(name));
      const bool is_empty = member.is_null() || (member.is_object() && member.empty());
      if (is_empty || !schema.has_field(name)) below.insert_root();
      set.attach(field(name), std::move(below));
    }
  } else {
    const Items items(&value, schema);
    for (const std::string& element : items.order) {
      const auto& same = items.of(element);
      FieldSet below = same.size() == 1 ? collect(*same.front(), schema.items()) : FieldSet();
      below.insert_root();
      set.attach(element, std::move(below));
    }
  }
  return set;
}

// ---- comparison

class Comparer {
 public:
  // At most one of both is nullptr: that value does not exist.
  void compare(const Json* before, const Json* after, const FieldSchema& schema) {
    if (before != nullptr && after != nullptr) {
      before = null_as_empty(before, *after);
      after = null_as_empty(after, *before);
    }
    const Json& shape = after != nullptr ? *after : *before;
    const bool is_mixed = before && after && shape_of(*before) != shape_of(*after);
    const bool is_empty =
        is_container(shape) && (!before || before->empty()) && (!after || after->empty());
    if (is_mixed || is_empty || is_leaf(shape, schema)) return leaf(before, after);
    if (shape.is_object()) {
      compare_members(before, after, schema);
    } else {
      compare_items(before, after, schema);
    }
    if (before == nullptr) result_.added.insert(path_);
    if (after == nullptr) result_.removed.insert(path_);
  }
  Comparison take() { return std::move(result_); }

 private:
  static bool is_container(const Json& value) { return value.is_object() || value.is_array(); }
  // A null beside items or members is a list or map without any.
  static const Json* null_as_empty(const Json* value, const Json& other) {
    static const Json kNoItems = Json::array({});
    static const Json kNoMembers = Json::object({});
    if (!value->is_null() || !is_container(other) || other.empty()) return value;
    return other.is_array() ? &kNoItems : &kNoMembers;
  }
  static int shape_of(const Json& value) {
    return value.is_object() ? 1 : value.is_array() ? 2 : 0;
  }

  void leaf(const Json* before, const Json* after) {
    if (before == nullptr) {
      result_.added.insert(path_);
    } else if (after == nullptr) {
      result_.removed.insert(path_);
    } else if (*before != *after) {
      result_.modified.insert(path_);
    }
  }

  void compare_below(std::string element, const Json* before, const Json* after,
                     const FieldSchema& schema) {
    path_.push_back(std::move(element));
    compare(before, after, schema);
    path_.pop_back();
  }

  void compare_members(const Json* before, const Json* after, const FieldSchema& schema) {
    if (before != nullptr)
      for (const auto& [name, value] : before->as_object())
        compare_below(field(name), &value, after ? after->find(name) : nullptr,
                      schema.member(name));
    if (after == nullptr) return;
    for (const auto& [name, value] : after->as_object())
      if (before == nullptr || before->find(name) == nullptr)
        compare_below(field(name), nullptr, &value, schema.member(name));
  }

  void compare_items(const Json* before, const Json* after, const FieldSchema& schema) {
    const Items old(before, schema);
    const Items now(after, schema);
    for (const std::string& element : old.order)
      compare_item(element, old.of(element), now.of(element), schema.items());
    for (const std::string& element : now.order)
      if (old.of(element).empty()) compare_item(element, {}, now.of(element), schema.items());
  }

  // If an element has several items, they count as one that is replaced whole.
  void compare_item(const std::string& element, const std::vector<const Json*>& old,
                    const std::vector<const Json*>& now, const FieldSchema& schema) {
    const auto one = [](const auto& items) { return items.size() == 1 ? items.front() : nullptr; };
    const bool was_double = old.size() > 1;
    const bool is_double = now.size() > 1;
    if (!was_double && !is_double) return compare_below(element, one(old), one(now), schema);
    FieldPath path = path_;
    path.push_back(element);
    if (was_double && is_double) {
      const bool is_equal = std::equal(old.begin(), old.end(), now.begin(), now.end(),
                                       [](const Json* a, const Json* b) { return *a == *b; });
      if (!is_equal) result_.modified.insert(path);
    } else if (was_double) {
      if (one(now) != nullptr) compare_below(element, nullptr, one(now), schema);
      result_.removed.insert(path);
    } else {
      if (one(old) != nullptr) compare_below(element, one(old), nullptr, schema);
      result_.added.insert(path);
    }
  }

  FieldPath path_;
  Comparison result_;
};

// ---- merging

Json merge(const Json* current, const Json* config, const FieldSchema& schema);

// Items of `config` come in its order, and those that only `current` has stay where they are among
// them.
Json merge_items(const Json& current, const Json& config, const FieldSchema& schema) {
  const Items now(&current, schema);
  const Items desired(&config, schema);
  std::vector<std::pair<std::string, const Json*>> old;
  for (const Json& item : current.as_array())
    if (auto element = element_of(item, schema)) old.emplace_back(std::move(*element), &item);
  const auto is_desired = [&](const std::string& element) { return !desired.of(element).empty(); };
  std::vector<std::string> shared;  // in the order of `config`
  for (const std::string& element : desired.order)
    if (!now.of(element).empty()) shared.push_back(element);

  Json merged = Json::array();
  std::vector<std::string> done;
  std::size_t next_shared = 0;
  const auto emit = [&](const std::string& element) {
    const auto& same = now.of(element);
    merged.push_back(merge(same.size() == 1 ? same.front() : nullptr, desired.of(element).front(),
                           schema.items()));
    done.push_back(element);
    if (next_shared < shared.size() && shared[next_shared] == element) ++next_shared;
  };
  std::size_t left = 0;
  std::size_t right = 0;
  while (left < old.size() || right < desired.order.size()) {
    const bool has_both = left < old.size() && right < desired.order.size();
    if (has_both && old[left].first == desired.order[right]) {
      emit(old[left].first);
      ++left;
      ++right;
      continue;
    }
    // `config` has this item at another place, so it is added there.
    if (has_both && is_desired(old[left].first) && next_shared < shared.size() &&
        shared[next_shared] != old[left].first) {
      ++left;
      continue;
    }
    if (left < old.size() && !is_desired(old[left].first)) {
      merged.push_back(*old[left].second);
      ++left;
      continue;
    }
    const bool is_done =
        left < old.size() && std::find(done.begin(), done.end(), old[left].first) != done.end();
    if (is_done) ++left;
    if (right < desired.order.size()) {
      emit(desired.order[right]);
      ++right;
    } else if (!is_done) {
      ++left;
    }
  }
  return merged;
}

Json merge(const Json* current, const Json* config, const FieldSchema& schema) {
  if (config == nullptr) return *current;
  const bool is_mixed =
      current == nullptr || current->type_name() != config->type_name() || is_leaf(*config, schema);
  if (is_mixed || config->empty() || current->empty()) {
    const bool is_kept = current != nullptr && config->empty() && !current->empty() &&
                         !is_leaf(*current, schema) &&
                         (config->is_null() || current->type_name() == config->type_name());
    return is_kept ? *current : *config;
  }
  if (config->is_array()) return merge_items(*current, *config, schema);
  Json merged = *current;
  for (const auto& [name, value] : config->as_object())
    merged.set(name, merge(current->find(name), &value, schema.member(name)));
  return merged;
}

}  // namespace

std::optional<std::string> element_of(const Json& item, const FieldSchema& list) {
  if (list.list_type() == ListType::kAtomic) return std::nullopt;
  if (list.list_type() == ListType::kSet) {
    if (item.is_object() || item.is_array() || item.is_null()) return std::nullopt;
    return fmt::format("v:{}", print_json(item));
  }
  if (!item.is_object()) return std::nullopt;
  Json keys = Json::object();
  for (const Json& key : list.list_keys()) {
    const std::string& name = key.as_string();
    const Json* value = item.find(name);
    const Json& known = value != nullptr ? *value : list.items().default_of(name);
    if (value != nullptr || !known.is_null()) keys.set(name, known);
  }
  if (keys.empty()) return std::nullopt;
  return fmt::format("k:{}", print_json(keys));
}

FieldSet fields_of(const Json& value, const FieldSchema& schema) {
  return collect(value, schema);
}

FieldSet with_named_fields(const FieldSet& set, const FieldSchema& schema) {
  FieldSet all;
  if (set.has_root()) all.insert_root();
  for (const auto& [element, child] : set.children()) {
    const bool is_field = element.starts_with("f:");
    const std::string_view name = std::string_view(element).substr(2);
    FieldSet below = with_named_fields(child, is_field ? schema.member(name) : schema.items());
    if (is_field && !child.children().empty() && schema.has_field(name)) below.insert_root();
    all.attach(element, std::move(below));
  }
  return all;
}

Comparison compare(const Json& before, const Json& after, const FieldSchema& schema) {
  Comparer comparer;
  comparer.compare(&before, &after, schema);
  return comparer.take();
}

Json merge_typed(const Json& current, const Json& config, const FieldSchema& schema) {
  return merge(&current, &config, schema);
}

Json without_fields(const Json& value, const FieldSet& gone, const FieldSchema& schema) {
  if (is_leaf(value, schema) || gone.children().empty()) return value;
  if (value.is_object()) {
    Json kept = Json::object();
    for (const auto& [name, member] : value.as_object()) {
      const FieldSet* below = gone.below(field(name));
      if (below != nullptr && below->has_root()) continue;
      kept.set(name, below ? without_fields(member, *below, schema.member(name)) : member);
    }
    return kept.empty() ? Json() : kept;
  }
  Json kept = Json::array();
  for (const Json& item : value.as_array()) {
    const auto element = element_of(item, schema);
    const FieldSet* below = element ? gone.below(*element) : nullptr;
    if (below != nullptr && below->has_root()) continue;
    kept.push_back(below ? without_fields(item, *below, schema.items()) : item);
  }
  return kept.empty() ? Json() : kept;
}

void discard_emptied(Json& value, const FieldSet& gone, const FieldSchema& schema) {
  for (const auto& [element, child] : gone.children()) {
    if (value.is_object()) {
      const std::string name = element.substr(2);
      Json* member = value.find(name);
      if (member != nullptr) discard_emptied(*member, child, schema.member(name));
      if (member != nullptr && member->is_null()) value.erase(name);
    } else if (value.is_array()) {
      for (Json& item : value.as_array())
        if (element_of(item, schema) == element) discard_emptied(item, child, schema.items());
    }
  }
}

}  // namespace kube::server
