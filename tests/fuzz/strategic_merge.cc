// The input is a target and a patch, a JSON document on a line each.
#include <set>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/tests/merge_patch.hh"
#include "tests/fuzz/fuzz.hh"

namespace {

const kube::MergeKeys& keys() {
  static const kube::MergeKeys table(
      {{"c", "name"}, {"c.e", "name"}, {"c.p", "port"}, {"v", "name"}});
  return table;
}

// Returns whether some list holds two objects with the same name or port: such a patch merges
// differently into what it has made.
bool has_twins(const kube::Json& value) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object()) {
      if (has_twins(member)) return true;
    }
  }
  if (!value.is_array()) return false;
  for (const auto key : {"name", "port"}) {
    std::set<std::string> seen;
    for (const kube::Json& item : value.as_array()) {
      const kube::Json* id = item.find(key);
      if (has_twins(item) || (id && !seen.insert(kube::print_json(*id)).second)) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(data, size);
  const std::size_t line = text.find('\n');
  if (line == text.npos) return 0;
  const auto target = kube::parse_json(text.substr(0, line));
  const auto patch = kube::parse_json(text.substr(line + 1));
  if (!target || !patch) return 0;

  const auto merged = kube::strategic_merge(*target, *patch, keys());
  if (merged && !has_twins(*patch)) {
    const auto twice = kube::strategic_merge(*merged, *patch, keys());
    hold(!twice || *twice == *merged, "a patch changes nothing the second time", text,
         twice ? kube::print_json(*twice) : "");
  }
  if (target->is_object()) {
    const auto unchanged = kube::strategic_merge(*target, kube::Json::object(), keys());
    hold(unchanged.has_value() && *unchanged == *target, "an empty patch changes nothing", text);
  }
  if (target->is_object() && patch->is_object()) {
    const kube::Json difference = kube::merge_diff(*target, *patch);
    const kube::Json result =
        difference.is_null() ? *target : kube::test::merge_patch(*target, difference);
    hold(kube::merge_diff(result, *patch).is_null(), "the difference leads to the other document",
         text, kube::print_json(difference));
  }
  return 0;
}
