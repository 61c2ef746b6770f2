// These bodies of requests are near the limits of what a store can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer::test {

// These bytes decide; zeros follow the last one.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}
  bool is_over() const { return rest_.empty(); }
  // Less than `count`, which is at most 256.
  std::size_t pick(std::size_t count);
  bool one_in(std::size_t count) { return pick(count) == count - 1; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[pick(all.size())];
  }
  std::string_view take(std::size_t count);

 private:
  std::string_view rest_;
};

struct Body {
  std::string text;
  std::string media_type = "application/json";
};

// A value as JSON text: deep, long, of many parts, no JSON at all, or nothing special.
std::string hostile_value(Choices& choices);
// An object of the kind, as JSON, YAML or protobuf.
Body hostile_object(Choices& choices, std::string_view api_version, std::string_view kind,
                    std::string_view ns, std::string_view name);
// A patch of one of the four kinds.
Body hostile_patch(Choices& choices, std::string_view api_version, std::string_view kind,
                   std::string_view ns, std::string_view name);

}  // namespace trainer::test
