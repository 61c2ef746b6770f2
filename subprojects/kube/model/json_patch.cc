#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"

namespace kube {
namespace {

// This is the API server's limit of what the copies of one patch add together, in bytes of JSON,
// since a copy of a list into itself doubles it.
constexpr std::size_t kMaxCopied = 3U << 20;
// This is the limit of parse_json(), too: functions of JSON recurse with the document, and copies
// of copies would double its depth.
constexpr std::size_t kMaxDepth = 200;

// Returns nullopt if a "~" is followed by neither "0" nor "1".
std::optional<std::string> unescape(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    ++i;
    if (i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    text += token[i] == '0' ? '~' : '/';
  }
  return text;
}

std::optional<std::size_t> index_of(std::string_view token) {
  if (token.size() > 1 && token[0] == '0') return std::nullopt;
  std::size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto result = std::from_chars(token.data(), end, index);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return index;
}

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

  // The items at both ends that are equal in both lists stay unchanged, so that an insertion is one
  // operation.
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
    // Items are removed from the back, so that the indices of those that must still be removed stay
    // right.
    for (std::size_t i = from.size() - tail; i > paired; --i)
      add("remove", pointer_join(path, std::to_string(i - 1)), nullptr);
    for (std::size_t i = paired; i < to.size() - tail; ++i)
      add("add", pointer_join(path, std::to_string(i)), &to[i]);
  }

  Json operations_ = Json::array();
};

enum class Operation { kAdd, kReplace, kRemove };

bool change_object(Json::Object& object, const std::string& name, Operation operation,
                   const Json& value) {
  if (operation != Operation::kAdd && !object.contains(name)) return false;
  if (operation == Operation::kRemove) return object.erase(name);
  object[name] = value;
  return true;
}

bool change_array(Json::Array& array, std::string_view token, Operation operation,
                  const Json& value) {
  const auto index = token == "-" ? array.size() : index_of(token);
  const bool is_add = operation == Operation::kAdd;
  if (!index || *index > array.size() || (!is_add && *index == array.size())) return false;
  const auto at = array.begin() + static_cast<std::ptrdiff_t>(*index);
  if (is_add) {
    array.insert(at, value);
  } else if (operation == Operation::kReplace) {
    *at = value;
  } else {
    array.erase(at);
  }
  return true;
}

bool change(Json& document, std::string_view path, Operation operation, const Json& value) {
  if (path.empty()) {
    document = operation == Operation::kRemove ? Json() : value;
    return true;
  }
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return false;
  // Only this document is changed; the lookup is shared with readers that may not.
  auto* parent = const_cast<Json*>(pointer_get(document, path.substr(0, slash)));
  if (parent == nullptr) return false;
  const std::string_view token = path.substr(slash + 1);
  if (parent->is_object()) {
    const auto name = unescape(token);
    return name && change_object(parent->as_object(), *name, operation, value);
  }
  if (parent->is_array()) return change_array(parent->as_array(), token, operation, value);
  return false;
}

// Returns how many containers within containers a value has, 0 for a scalar.
std::size_t depth_of(const Json& value) {
  std::size_t below = 0;
  if (value.is_array())
    for (const Json& item : value.as_array()) below = std::max(below, depth_of(item));
  else if (value.is_object())
    for (const auto& [name, member] : value.as_object()) below = std::max(below, depth_of(member));
  else
    return 0;
  return below + 1;
}

// `copied` is the number of bytes that the operations before it have copied.
Result<void> apply_operation(Json& document, const Json& operation, std::size_t& copied) {
  const std::string_view name = operation.get_string("op");
  const std::string_view path = operation.get_string("path");
  Json value = operation.get("value");
  if (name == "test") {
    const Json* found = pointer_get(document, path);
    if (found != nullptr ? *found == value : value.is_null()) return {};
    return fail(ErrorCode::kInvalid, "testing value {} failed: test failed", path);
  }
  std::optional<Operation> kind;
  if (name == "add" || name == "copy" || name == "move") kind = Operation::kAdd;
  if (name == "replace") kind = Operation::kReplace;
  if (name == "remove") kind = Operation::kRemove;
  if (!kind)
    return fail(ErrorCode::kUnsupported, "{}: the operation \"{}\" is not supported", path, name);
  const std::string_view from = operation.get_string("from");
  if (name == "copy" || name == "move") {
    const Json* source = pointer_get(document, from);
    if (source == nullptr) return fail(ErrorCode::kInvalid, "{}: there is no such place", from);
    if (name == "copy") copied += print_json(*source).size();
    if (copied > kMaxCopied)
      return fail(ErrorCode::kTooLarge, "{}: the copies of one patch are larger than {} bytes",
                  path, kMaxCopied);
    value = *source;
    if (name == "move" && !change(document, from, Operation::kRemove, value))
      return fail(ErrorCode::kInvalid, "{}: there is no such place", from);
  }
  if (static_cast<std::size_t>(std::ranges::count(path, '/')) + depth_of(value) > kMaxDepth)
    return fail(ErrorCode::kTooLarge, "{}: the patch nests containers deeper than {}", path,
                kMaxDepth);
  if (!change(document, path, *kind, value))
    return fail(ErrorCode::kInvalid, "{}: there is no such place", path);
  return {};
}

}  // namespace

const Json* pointer_get(const Json& document, std::string_view pointer) {
  const Json* at = &document;
  while (at && !pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    const auto name = unescape(token);
    if (!name) return nullptr;
    if (at->is_array()) {
      const auto index = index_of(*name);
      at = index && *index < at->size() ? &at->as_array()[*index] : nullptr;
    } else {
      at = at->find(*name);
    }
  }
  return at;
}

std::string pointer_join(std::string_view pointer, std::string_view token) {
  std::string joined(pointer);
  joined += '/';
  for (const char c : token) joined += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return joined;
}

Json json_patch_diff(const Json& from, const Json& to) {
  Differ differ;
  differ.compare("", from, to);
  return differ.take();
}

Result<Json> apply_json_patch(Json document, const Json& operations) {
  if (operations.is_null()) return document;
  if (!operations.is_array()) return fail(ErrorCode::kInvalid, "a JSON Patch must be an array");
  std::size_t copied = 0;
  for (const Json& operation : operations.as_array())
    if (auto applied = apply_operation(document, operation, copied); !applied)
      return tl::unexpected(std::move(applied.error()));
  return document;
}

}  // namespace kube
