// Every text that parses must print and parse as the same value, and its patches must have the
// promised results.
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "tests/fuzz/fuzz.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using enum kube::JsonFilter::Members;
  const kube::JsonFilter only{
      "", kInclude, {{"a"}, {"b", kExclude, {{"a"}, {"c", kInclude, {{"*"}}}}}}};
  const std::string_view text = as_text(data, size);
  const auto selected = kube::parse_json(text, {}, only);
  const auto value = kube::parse_json(text);
  if (!value) {
    hold(value.error().code == kube::ErrorCode::kParse, "a refusal is a parse error",
         value.error().message);
    return 0;
  }
  hold(kube::is_utf8(text), "what parses is UTF-8", text);
  hold(selected.has_value(), "of what parses a part can be read", text);
  if (value->is_object()) {
    for (const char* const name : {"a", "b"}) {
      const auto* all = value->find(name);
      const auto* part = selected->find(name);
      hold((all == nullptr) == (part == nullptr), "what is selected is found", text, name);
    }
    const auto* all = value->find("a");
    hold(all == nullptr || *selected->find("a") == *all, "and is the same", text);
    hold(selected->size() <= 2, "nothing else is", text);
  }
  const std::string printed = kube::print_json(*value);
  const auto again = kube::parse_json(printed);
  hold(again.has_value() && *again == *value, "printing and parsing are inverse", text, printed);
  hold(kube::print_json(*again) == printed, "the printed form is canonical", text, printed);
  hold(*kube::parse_json(kube::print_json_pretty(*value)) == *value,
       "the form for people has the same value", text);
  hold(kube::merge_diff(*value, *value).is_null(), "nothing turns a document into itself", text);
  hold(kube::json_patch_diff(*value, *value).empty(), "no operation turns a document into itself",
       text);
  return 0;
}
