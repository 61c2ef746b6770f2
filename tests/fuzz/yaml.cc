// Every text that parses must print and parse as the same value.
#include "kube/model/yaml.hh"

#include "kube/model/json_text.hh"
#include "tests/fuzz/fuzz.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(data, size);
  const auto documents = kube::parse_yaml_documents(text);
  if (!documents) {
    hold(documents.error().code == kube::ErrorCode::kParse, "a refusal is a parse error",
         documents.error().message);
    return 0;
  }
  for (const kube::Json& document : *documents) {
    const std::string printed = kube::print_yaml(document);
    const auto again = kube::parse_yaml(printed);
    hold(again.has_value(), "what is printed parses", printed, again ? "" : again.error().message);
    hold(*again == document, "printing and parsing are inverse", printed, kube::print_json(*again));
    const auto as_json = kube::parse_json(kube::print_json(document));
    hold(as_json.has_value() && *as_json == document, "every YAML value has a JSON form", printed);
  }
  return 0;
}
