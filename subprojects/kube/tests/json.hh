#pragma once
// A document that a test has as text.
#include <string_view>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"

namespace kube::test {

inline Json json(std::string_view text) {
  auto value = parse_json(text);
  if (!value) FAIL(value.error().message);
  return std::move(*value);
}

}  // namespace kube::test
