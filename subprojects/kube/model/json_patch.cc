#include <algorithm>

#include "kube/model/patch.hh"

namespace kube {
namespace {

// Walks two documents side by side and collects the operations in an order in which they can be
// applied.
class Differ {
 public:
  void compare(const std::string& path, const Json& from, const Json& to) {
    if (from.is_object() && to.is_object()) {
      compare_members(path, from.as_object(), to.as_object());
    } else if (from.is_array() && to.is_array()) {
      compare_items(path, from.as_array(), to.as_array());
    } else if (from != to) {
      add("replace", path, &to);
    }
  }
  Json take() { return std::move(operations_); }

 private:
  void add(std::string_view op, const std::string& path, const Json* value) {
    Json operation = Json::object({{"op", op}, {"path", path}});
    if (value) operation.set("value", *value);
    operations_.push_back(std::move(operation));
  }

  void compare_members(const std::string& path, const Json::Object& from, const Json::Object& to) {
    for (const auto& [name, before] : from) {
      if (!to.contains(name)) add("remove", pointer_join(path, name), nullptr);
    }
    for (const auto& [name, after] : to) {
      const std::string member = pointer_join(path, name);
      if (const Json* before = from.find(name)) {
        compare(member, *before, after);
      } else {
        add("add", member, &after);
      }
    }
  }

  // What both lists begin and end with stays untouched, so that an insertion is one operation.
  void compare_items(const std::string& path, const Json::Array& from, const Json::Array& to) {
    const std::size_t shorter = std::min(from.size(), to.size());
    std::size_t head = 0;
    while (head < shorter && from[head] == to[head]) ++head;
    std::size_t tail = 0;
    while (tail < shorter - head && from[from.size() - 1 - tail] == to[to.size() - 1 - tail])
      ++tail;

    const std::size_t paired = shorter - tail;
    for (std::size_t i = head; i < paired; ++i)
      compare(pointer_join(path, std::to_string(i)), from[i], to[i]);
    // From the back, so that the indices of what is still to be removed stay right.
    for (std::size_t i = from.size() - tail; i > paired; --i)
      add("remove", pointer_join(path, std::to_string(i - 1)), nullptr);
    for (std::size_t i = paired; i < to.size() - tail; ++i)
      add("add", pointer_join(path, std::to_string(i)), &to[i]);
  }

  Json operations_ = Json::array();
};

}  // namespace

Json json_patch_diff(const Json& from, const Json& to) {
  Differ differ;
  differ.compare("", from, to);
  return differ.take();
}

}  // namespace kube
