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

// Where the merge is: `place` for people ("spec.containers[1].env"), `type` for the table of merge
// keys ("spec.containers.env").
struct Location {
  std::string place;
  std::string type;

  Location member(std::string_view name) const {
    return {join_field(place, name), join_field(type, name)};
  }
  Location item(std::size_t index) const { return {join_index(place, index), type}; }
};

// A null in what a patch adds removes something that is not there.
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

  // The first error, if any; `target` is then only partly merged.
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
  // Checks that an item has an identity, and adds it to `names`. Strings are borrowed; keys that
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

  // For each name the position of the first that is equal.
  static std::vector<std::size_t> first_of_each(const std::vector<std::string_view>& names) {
    const NameIndex index(names, [](std::string_view name) { return name; });
    std::vector<std::size_t> first;
    first.reserve(names.size());
    for (const std::string_view name : names) first.push_back(*index.find(name));
    return first;
  }

  // Puts the merged items into upstream's order, see strategic_merge(). The first `originals` items
  // were there before. By position: the first item of the same name; by that, its place in the
  // patch.
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

}  // namespace

std::optional<std::string_view> MergeKeys::key_of(std::string_view path) const {
  const auto at = keys_.find(path);
  return at == keys_.end() ? std::nullopt : std::optional<std::string_view>(at->second);
}

Result<Json> strategic_merge(Json target, const Json& patch, const MergeKeys& keys) {
  if (!patch.is_object())
    return fail(ErrorCode::kInvalid, "a strategic merge patch must be an object, not {}",
                patch.type_name());
  if (target.is_null()) target = Json::object();
  if (!target.is_object())
    return fail(ErrorCode::kInvalid,
                "the target of a strategic merge patch must be an object, not {}",
                target.type_name());
  if (auto error = Merger(keys).merge_objects(target, patch, {}))
    return tl::unexpected(std::move(*error));
  return target;
}

}  // namespace kube
