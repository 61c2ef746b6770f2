#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "kube/model/field_error.hh"
#include "kube/model/json_text.hh"
#include "kube/model/name_index.hh"
#include "kube/model/patch.hh"

namespace kube {
namespace {

// This is the place of the merge: `place` for people ("spec.containers[1].env"), `type` for the
// table of merge keys ("spec.containers.env").
struct Location {
  std::string place;
  std::string type;

  Location member(std::string_view name) const {
    return {join_field(place, name), join_field(type, name)};
  }
  Location item(std::size_t index) const { return {join_index(place, index), type}; }
};

// A null in a value that a patch adds would remove something that is not there.
void discard_nulls(Json& value) {
  if (value.is_array()) {
    for (Json& item : value.as_array()) discard_nulls(item);
  } else if (value.is_object()) {
    value.as_object().keep_if([](JsonObject::Member& member) {
      discard_nulls(member.second);
      return !member.second.is_null();
    });
  }
}

struct Names {
  std::vector<std::string_view> all;
  std::deque<std::string> printed;
};

constexpr std::size_t kUntouched = std::numeric_limits<std::size_t>::max();

class Merger {
 public:
  explicit Merger(const MergeKeys& keys) : keys_(keys) {}

  // Returns the first error, if any; `target` is then only partly merged.
  std::optional<Error> merge_objects(Json& target, const Json& patch, const Location& at) {
    for (const auto& [name, change] : patch.as_object()) {
      if (change.is_null()) {
        target.erase(name);
        continue;
      }
      Json& member = target[name];
      if (member.is_object() && change.is_object()) {
        if (auto error = merge_objects(member, change, at.member(name))) return error;
      } else if (member.is_array() && change.is_array() &&
                 keys_.key_of(join_field(at.type, name))) {
        if (auto error = merge_lists(member.as_array(), change.as_array(), at.member(name)))
          return error;
      } else {
        member = change;
        discard_nulls(member);
      }
    }
    return std::nullopt;
  }

 private:
  friend class DirectiveMerger;
  // Checks that an item has an identity, and adds it to `names`. Strings are borrowed. Keys that
  // are numbers ("containerPort") are printed into `printed`, behind a byte that begins no name.
  std::optional<Error> identify(const Json& item, std::string_view key, std::string_view owner,
                                const Location& at, std::size_t index, Names& names) const {
    const Json* value = item.find(key);
    if (value && value->is_string()) {
      names.all.emplace_back(value->as_string());
      return std::nullopt;
    }
    if (value && (value->is_number() || value->is_bool())) {
      names.all.emplace_back(names.printed.emplace_back('\0' + print_json(*value)));
      return std::nullopt;
    }
    const std::string problem =
        item.is_object()
            ? fmt::format("has {} \"{}\", by which the items of this list are merged; {} it",
                          value ? fmt::format("a value of type {} as", value->type_name()) : "no",
                          key, value ? "correct" : "add")
            : fmt::format("is of type {}, but the items of this list are objects merged by \"{}\"",
                          item.type_name(), key);
    return Error(ErrorCode::kInvalid,
                 fmt::format("{}: the {}'s item {}", at.item(index).place, owner, problem));
  }

  std::optional<Error> merge_lists(Json::Array& target, const Json::Array& patch,
                                   const Location& at) {
    const std::string_view key = *keys_.key_of(at.type);
    Names names;
    names.all.reserve(target.size() + patch.size());
    for (std::size_t i = 0; i < target.size(); ++i)
      if (auto error = identify(target[i], key, "target", at, i, names)) return error;
    for (std::size_t i = 0; i < patch.size(); ++i)
      if (auto error = identify(patch[i], key, "patch", at, i, names)) return error;

    const std::size_t originals = target.size();
    std::vector<std::size_t> first = first_of_each(names.all);
    std::vector<std::size_t> ranks(originals, kUntouched);
    for (std::size_t i = 0; i < patch.size(); ++i) {
      std::size_t& position = first[originals + i];
      if (position == originals + i) {  // a new name
        position = target.size();
        target.push_back(patch[i]);
        discard_nulls(target.back());
        ranks.push_back(i);
        continue;
      }
      if (position >= originals) position = first[position];  // new, and in the patch before
      ranks[position] = std::min(ranks[position], i);
      if (auto error = merge_objects(target[position], patch[i], at.item(position))) return error;
    }
    // Each new item is the first of its name.
    for (std::size_t i = originals; i < target.size(); ++i) first[i] = i;
    reorder(target, originals, first, ranks);
    return std::nullopt;
  }

  // Returns for each name the position of the first equal one.
  static std::vector<std::size_t> first_of_each(const std::vector<std::string_view>& names) {
    const NameIndex index(names, [](std::string_view name) { return name; });
    std::vector<std::size_t> first;
    first.reserve(names.size());
    for (const std::string_view name : names) first.push_back(*index.find(name));
    return first;
  }

  // Puts the merged items into upstream's order, see strategic_merge(). The first `originals` items
  // were in the target before. `first` has for each position that of the first item of the same
  // name. `ranks` has for such a position the item's place in the patch.
  static void reorder(Json::Array& target, std::size_t originals,
                      const std::vector<std::size_t>& first,
                      const std::vector<std::size_t>& ranks) {
    std::vector<std::size_t> untouched;
    std::vector<std::size_t> patched;
    for (std::size_t i = 0; i < target.size(); ++i)
      (ranks[first[i]] == kUntouched ? untouched : patched).push_back(i);
    std::stable_sort(patched.begin(), patched.end(), [&](std::size_t a, std::size_t b) {
      return ranks[first[a]] < ranks[first[b]];
    });
    // Moves items of equal names together.
    const auto by_first = [&](std::size_t a, std::size_t b) { return first[a] < first[b]; };
    if (!std::is_sorted(untouched.begin(), untouched.end(), by_first))
      std::stable_sort(untouched.begin(), untouched.end(), by_first);

    Json::Array ordered;
    ordered.reserve(target.size());
    auto next = untouched.begin();
    for (const std::size_t item : patched) {
      for (; next != untouched.end() && first[item] < originals && first[*next] < first[item];
           ++next)
        ordered.push_back(std::move(target[*next]));
      ordered.push_back(std::move(target[item]));
    }
    for (; next != untouched.end(); ++next) ordered.push_back(std::move(target[*next]));
    target = std::move(ordered);
  }

  const MergeKeys& keys_;
};

// Returns the value without directives; null for one that is itself only a directive.
Json without_directives(const Json& value) {
  if (value.is_array()) {
    Json kept = Json::array();
    for (const Json& item : value.as_array())
      if (item.find("$patch") == nullptr) kept.push_back(without_directives(item));
    return kept;
  }
  if (!value.is_object()) return value;
  Json kept = Json::object();
  for (const auto& [name, member] : value.as_object())
    if (!name.starts_with('$') && member.find("$patch") == nullptr)
      kept.set(name, without_directives(member));
  return kept;
}

constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDelete = "$deleteFromPrimitiveList/";

// Applies the directives of a patch and leaves the rest to Merger.
class DirectiveMerger {
 public:
  explicit DirectiveMerger(const MergeKeys& keys) : keys_(keys), plain_(keys) {}

  std::optional<Error> merge_objects(Json& target, const Json& patch, const Location& at) {
    if (const Json* directive = patch.find("$patch")) {
      if (*directive != Json("replace") && *directive != Json("delete"))
        return Error(ErrorCode::kInvalid,
                     fmt::format("{}: unknown patch type: {}", at.place, print_json(*directive)));
      target = *directive == Json("replace") ? without_directives_but_self(patch) : Json::object();
      discard_nulls(target);
      return std::nullopt;
    }
    if (const Json* retained = patch.find("$retainKeys"); retained && retained->is_array()) {
      const Json::Array& names = retained->as_array();
      target.as_object().keep_if([&names](const JsonObject::Member& member) {
        return std::find(names.begin(), names.end(), Json(member.first)) != names.end();
      });
    }
    for (const auto& [name, change] : patch.as_object()) {
      if (name.starts_with(kDelete)) {
        remove_scalars(target[name.substr(kDelete.size())], change);
      } else if (name.starts_with(kOrder)) {
        const std::string list = name.substr(kOrder.size());
        if (patch.find(list)) continue;  // with the list itself
        if (auto error = merge_member(target, list, Json::array(), patch, at)) return error;
      } else if (!name.starts_with('$')) {
        if (auto error = merge_member(target, name, change, patch, at)) return error;
      }
    }
    target.as_object().keep_if(
        [](const JsonObject::Member& member) { return !member.second.is_null(); });
    return std::nullopt;
  }

 private:
  static Json without_directives_but_self(const Json& patch) {
    Json copy = patch;
    copy.erase("$patch");
    return without_directives(copy);
  }

  static void remove_scalars(Json& list, const Json& gone) {
    if (!list.is_array() || !gone.is_array()) return;
    std::erase_if(list.as_array(), [&gone](const Json& item) {
      return std::find(gone.as_array().begin(), gone.as_array().end(), item) !=
             gone.as_array().end();
    });
  }

  std::optional<Error> merge_member(Json& target, const std::string& name, const Json& change,
                                    const Json& patch, const Location& at) {
    if (change.is_null()) {
      target.erase(name);
      return std::nullopt;
    }
    Json& member = target[name];
    const Location below = at.member(name);
    if (change.is_object() && member.is_object()) return merge_objects(member, change, below);
    const auto key = keys_.key_of(below.type);
    if (change.is_array() && key && (member.is_array() || member.is_null())) {
      const Json* order = patch.find(std::string(kOrder) + name);
      if (member.is_null() && change.empty() && order) return std::nullopt;
      if (member.is_null()) member = Json::array();
      const Json::Array none;
      const Json::Array& ordered = order && order->is_array() ? order->as_array() : none;
      return key->empty() ? merge_scalars(member, change.as_array(), ordered)
                          : merge_items(member.as_array(), change.as_array(), ordered, *key, below);
    }
    if (change.is_object() && change.find("$patch")) {
      // The member is no object: a replacement sets the object, a deletion leaves nothing.
      member =
          change.get_string("$patch") == "replace" ? without_directives_but_self(change) : Json();
    } else {
      member = without_directives(change);
    }
    discard_nulls(member);
    return std::nullopt;
  }

  static const Json* find_item(const Json::Array& items, std::string_view key, const Json& value) {
    const auto at = std::find_if(items.begin(), items.end(), [&](const Json& item) {
      const Json* found = item.find(key);
      return found && *found == value;
    });
    return at == items.end() ? nullptr : &*at;
  }

  std::optional<Error> merge_items(Json::Array& target, const Json::Array& patch,
                                   const Json::Array& order, std::string_view key,
                                   const Location& at) {
    Json::Array changes;
    for (const Json& item : patch) {
      const std::string_view directive = item.get_string("$patch");
      if (directive == "delete") {
        std::erase_if(target, [&](const Json& known) {
          return known.find(key) && item.find(key) && *known.find(key) == *item.find(key);
        });
      } else if (directive == "replace") {
        target.clear();
      } else {
        changes.push_back(item);
      }
    }
    // Items that exist already are merged here; Merger decides the order of all items.
    for (Json& change : changes) {
      const Json* value = change.find(key);
      Json* known = value ? const_cast<Json*>(find_item(target, key, *value)) : nullptr;
      if (known == nullptr) {
        change = without_directives(change);
        continue;
      }
      if (auto error = merge_objects(*known, change,
                                     at.item(static_cast<std::size_t>(known - target.data()))))
        return error;
      change = Json::object({{key, *value}});
    }
    Json::Array ordered;
    for (const Json& place : order) {
      const Json* value = place.find(key);
      if (!value) continue;
      if (const Json* change = find_item(changes, key, *value)) {
        ordered.push_back(*change);
      } else if (find_item(target, key, *value)) {
        ordered.push_back(Json::object({{key, *value}}));
      }
    }
    for (Json& change : changes)
      if (!change.find(key) || !find_item(ordered, key, *change.find(key)))
        ordered.push_back(std::move(change));
    return plain_.merge_lists(target, ordered, at);
  }

  // The key of a scalar is the scalar itself.
  static std::optional<Error> merge_scalars(Json& target, const Json::Array& patch,
                                            const Json::Array& order) {
    const auto has = [](const Json::Array& list, const Json& value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    const auto wrapped = [](const Json::Array& values) {
      Json list = Json::array();
      for (const Json& value : values) list.push_back(Json::object({{"v", value}}));
      return Json::object({{"l", std::move(list)}});
    };
    Json::Array ordered;
    for (const Json& value : order)
      if (has(patch, value) || has(target.as_array(), value)) ordered.push_back(value);
    for (const Json& value : patch)
      if (!has(ordered, value)) ordered.push_back(value);
    const MergeKeys keys(std::map<std::string, std::string, std::less<>>{{"l", "v"}});
    auto merged = strategic_merge(wrapped(target.as_array()), wrapped(ordered), keys);
    if (!merged) return std::move(merged.error());
    target = Json::array();
    for (const Json& item : merged->get_array("l")) target.push_back(item.get("v"));
    return std::nullopt;
  }

  const MergeKeys& keys_;
  Merger plain_;
};

Result<Json> objects_only(Json target, const Json& patch) {
  if (!patch.is_object())
    return fail(ErrorCode::kInvalid, "a strategic merge patch must be an object, not {}",
                patch.type_name());
  if (target.is_null()) target = Json::object();
  if (!target.is_object())
    return fail(ErrorCode::kInvalid,
                "the target of a strategic merge patch must be an object, not {}",
                target.type_name());
  return target;
}

}  // namespace

std::optional<std::string_view> MergeKeys::key_of(std::string_view path) const {
  const auto at = keys_.find(path);
  return at == keys_.end() ? std::nullopt : std::optional<std::string_view>(at->second);
}

Result<Json> strategic_merge(Json target, const Json& patch, const MergeKeys& keys) {
  auto merged = objects_only(std::move(target), patch);
  if (!merged) return merged;
  if (auto error = Merger(keys).merge_objects(*merged, patch, {}))
    return tl::unexpected(std::move(*error));
  return merged;
}

Result<Json> strategic_merge_with_directives(Json target, const Json& patch,
                                             const MergeKeys& keys) {
  auto merged = objects_only(std::move(target), patch);
  if (!merged) return merged;
  if (auto error = DirectiveMerger(keys).merge_objects(*merged, patch, {}))
    return tl::unexpected(std::move(*error));
  return merged;
}

}  // namespace kube
