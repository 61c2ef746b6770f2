// Random documents for property tests: the same seed gives the same documents.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "kube/model/json.hh"

namespace kube::test {

class RandomJson {
 public:
  explicit RandomJson(unsigned seed) : engine_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }

  Json value(int depth = 4) {
    switch (below(depth > 0 ? 9 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 1;
      case 2:
        return integer();
      case 3:
        return real();
      case 4:
        return text();
      case 5:
        return name();
      case 6: {
        Json::Array items;
        for (auto count = below(5); count > 0; --count) items.push_back(value(depth - 1));
        return items;
      }
      default:
        return object(depth);
    }
  }

  Json object(int depth = 4) {
    Json result = Json::object();
    for (auto count = below(5); count > 0; --count) {
      const std::string member = name();  // a statement of its own, for the order
      result.set(member, value(depth - 1));
    }
    return result;
  }

  // Few names, so that two random documents share some.
  std::string name() {
    static const char* const kNames[] = {"name", "a",   "b",   "",  "true",
                                         "1.5",  "x/y", "m~n", "é", "- a"};
    return kNames[below(std::size(kNames))];
  }

  std::string text() {
    static const char* const kParts[] = {"a",      "Z",          "0",
                                         "7",      " ",          "\n",
                                         "\n\n",   "\t",         ":",
                                         ": ",     "#",          " #",
                                         "-",      "- ",         "?",
                                         "|",      ">",          "\"",
                                         "'",      "\\",         "{",
                                         "]",      "!",          "&",
                                         "*",      "%",          "@",
                                         "`",      "yes",        "Null",
                                         "~",      ".",          "e",
                                         "x",      "<<",         "=",
                                         "\r",     "\x01",       "\x7f",
                                         "é",      "😀",         "\u2028",
                                         "\ufeff", "\u0085",     "---",
                                         "...",    "1e3",        "0x1F",
                                         "017",    "2026-08-20", "word word word"};
    std::string result;
    for (auto count = below(7); count > 0; --count) result += kParts[below(std::size(kParts))];
    return result;
  }

 private:
  Json integer() {
    const auto bits = static_cast<std::int64_t>(engine_());
    return bits >> below(64);
  }

  Json real() {
    static const double kValues[] = {
        0.0, -0.0, 1.0, -1.5, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456.0};
    return kValues[below(std::size(kValues))];
  }

  std::mt19937_64 engine_;
};

}  // namespace kube::test
