#include <fmt/format.h>

#include <algorithm>

#include "kube/model/field_error.hh"
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"

namespace kube {
namespace {

// Where the merge is: `place` for people ("spec.containers[1].env"), `type` for the table of
// merge keys
// ("spec.containers.env").
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
    JsonObject& members = value.as_object();
    for (auto at = members.begin(); at != members.end();) {
      if (at->second.is_null()) {
        at = members.erase(at);
      } else {
        discard_nulls(at->second);
        ++at;
      }
    }
  }
}

// The position of the first item of each name.
using Positions = std::map<std::string, std::size_t, std::less<>>;

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
  // The identity of an item; as text, since keys may be numbers ("containerPort").
  Result<std::string> identify(const Json& item, std::string_view key, std::string_view owner,
                               const Location& at) const {
    const Json* value = item.find(key);
    if (value && (value->is_string() || value->is_number() || value->is_bool()))
      return print_json(*value);
    const std::string problem =
        item.is_object()
            ? fmt::format("has {} \"{}\", by which the items of this list are merged; {} it",
                          value ? fmt::format("a value of type {} as", value->type_name()) : "no",
                          key, value ? "correct" : "add")
            : fmt::format("is of type {}, but the items of this list are objects merged by \"{}\"",
                          item.type_name(), key);
    return fail(ErrorCode::kInvalid, fmt::format("{}: the {}'s item {}", at.place, owner, problem));
  }

  std::optional<Error> merge_lists(Json::Array& target, const Json::Array& patch,
                                   const Location& at) {
    const std::string_view key = *keys_.key_of(at.type);
    std::vector<std::string> names;  // of the items in `target`
    Positions positions;
    for (const Json& item : target) {
      auto name = identify(item, key, "target", at.item(names.size()));
      if (!name) return name.error();
      positions.emplace(*name, names.size());
      names.push_back(std::move(*name));
    }
    const std::size_t originals = target.size();
    Positions patch_order;
    for (std::size_t i = 0; i < patch.size(); ++i) {
      auto name = identify(patch[i], key, "patch", at.item(i));
      if (!name) return name.error();
      patch_order.emplace(*name, i);
      const auto [position, is_new] = positions.emplace(*name, target.size());
      if (is_new) {
        names.push_back(std::move(*name));
        target.push_back(patch[i]);
        discard_nulls(target.back());
      } else if (auto error =
                     merge_objects(target[position->second], patch[i], at.item(position->second))) {
        return error;
      }
    }
    reorder(target, names, originals, positions, patch_order);
    return std::nullopt;
  }

  // Puts the merged items into upstream's order, see strategic_merge(). `names` are those of
  // `target`, of which the first `originals` items were there before.
  static void reorder(Json::Array& target, const std::vector<std::string>& names,
                      std::size_t originals, const Positions& positions,
                      const Positions& patch_order) {
    std::vector<std::size_t> untouched;
    std::vector<std::size_t> patched;
    for (std::size_t i = 0; i < target.size(); ++i)
      (patch_order.contains(names[i]) ? patched : untouched).push_back(i);
    const auto sort_by = [&](std::vector<std::size_t>& items, const Positions& order) {
      std::stable_sort(items.begin(), items.end(), [&](std::size_t a, std::size_t b) {
        return order.find(names[a])->second < order.find(names[b])->second;
      });
    };
    sort_by(patched, patch_order);
    sort_by(untouched, positions);  // which moves items of equal names together

    Json::Array ordered;
    ordered.reserve(target.size());
    auto next = untouched.begin();
    for (const std::size_t item : patched) {
      const std::size_t position = positions.find(names[item])->second;
      for (; next != untouched.end() && position < originals &&
             positions.find(names[*next])->second < position;
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
  if (at == keys_.end()) return std::nullopt;
  return at->second;
}

Result<Json> strategic_merge(Json target, const Json& patch, const MergeKeys& keys) {
  if (!patch.is_object())
    return fail(
        ErrorCode::kInvalid,
        fmt::format("a strategic merge patch must be an object, not {}", patch.type_name()));
  if (target.is_null()) target = Json::object();
  if (!target.is_object())
    return fail(ErrorCode::kInvalid,
                fmt::format("the target of a strategic merge patch must be an object, not {}",
                            target.type_name()));
  if (auto error = Merger(keys).merge_objects(target, patch, {}))
    return tl::unexpected(std::move(*error));
  return target;
}

}  // namespace kube
