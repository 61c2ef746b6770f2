#include "tests/instructions/objects.hh"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "kube/model/json_text.hh"
#include "tests/support/source_root.hh"

namespace trainer::instructions {

std::string object_text(std::string_view name) {
  std::ifstream file(
      fmt::format("{}/tests/instructions/objects/{}.json", test::source_root(), name));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.empty()) fail(fmt::format("no object {}", name));
  text.pop_back();  // the end of the line
  return text;
}

kube::Json object(std::string_view name) {
  auto parsed = kube::parse_json(object_text(name));
  if (!parsed) fail(fmt::format("{}: {}", name, parsed.error().message));
  return std::move(*parsed);
}

void fail(const std::string& what) {
  fmt::print(stderr, "instructions: {}\n", what);
  std::exit(1);
}

}  // namespace trainer::instructions
