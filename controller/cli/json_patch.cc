#include "controller/cli/json_patch.hh"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "kube/model/patch.hh"

namespace trainer {
namespace {

// "a~1b" -> "a/b".
std::string unescape(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size()) {
      text.push_back(token[++i] == '1' ? '/' : '~');
    } else {
      text.push_back(token[i]);
    }
  }
  return text;
}

std::optional<std::size_t> index_of(std::string_view token, std::size_t size) {
  if (token == "-") return size;
  std::size_t index = 0;
  const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (token.empty() || error != std::errc{} || stop != token.data() + token.size())
    return std::nullopt;
  return index;
}

enum class Operation { kAdd, kReplace, kRemove };

bool change_object(kube::Json::Object& object, const std::string& name, Operation operation,
                   const kube::Json& value) {
  if (operation != Operation::kAdd && !object.contains(name)) return false;
  if (operation == Operation::kRemove) return object.erase(name);
  object[name] = value;
  return true;
}

bool change_array(kube::Json::Array& array, std::string_view token, Operation operation,
                  const kube::Json& value) {
  const auto index = index_of(token, array.size());
  const bool is_add = operation == Operation::kAdd;
  if (!index || *index > array.size() || (!is_add && *index == array.size())) return false;
  const auto at = array.begin() + static_cast<std::ptrdiff_t>(*index);
  switch (operation) {
    case Operation::kAdd:
      array.insert(at, value);
      break;
    case Operation::kReplace:
      *at = value;
      break;
    case Operation::kRemove:
      array.erase(at);
      break;
  }
  return true;
}

bool change(kube::Json& document, std::string_view path, Operation operation,
            const kube::Json& value) {
  if (path.empty()) {
    document = operation == Operation::kRemove ? kube::Json() : value;
    return true;
  }
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return false;
  // Only this document is changed; the lookup is shared with readers that may not.
  auto* parent = const_cast<kube::Json*>(kube::pointer_get(document, path.substr(0, slash)));
  if (parent == nullptr) return false;
  const std::string_view token = path.substr(slash + 1);
  if (parent->is_object())
    return change_object(parent->as_object(), unescape(token), operation, value);
  if (parent->is_array()) return change_array(parent->as_array(), token, operation, value);
  return false;
}

}  // namespace

kube::Result<kube::Json> apply_json_patch(kube::Json document, const kube::Json& operations) {
  if (operations.is_null()) return document;
  if (!operations.is_array())
    return kube::fail(kube::ErrorCode::kInvalid, "a JSON Patch must be an array");
  for (const kube::Json& operation : operations.as_array()) {
    const std::string_view name = operation.get_string("op");
    const std::string_view path = operation.get_string("path");
    std::optional<Operation> kind;
    if (name == "add") kind = Operation::kAdd;
    if (name == "replace") kind = Operation::kReplace;
    if (name == "remove") kind = Operation::kRemove;
    if (!kind) {
      return kube::fail(kube::ErrorCode::kUnsupported,
                        fmt::format("{}: the operation \"{}\" is not supported", path, name));
    }
    const kube::Json* value = operation.find("value");
    if (!change(document, path, *kind, value == nullptr ? kube::Json() : *value)) {
      return kube::fail(kube::ErrorCode::kInvalid, fmt::format("{}: there is no such place", path));
    }
  }
  return document;
}

}  // namespace trainer
