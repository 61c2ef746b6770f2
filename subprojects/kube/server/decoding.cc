#include "kube/server/decoding.hh"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/quantity.hh"
#include "kube/model/time.hh"

namespace kube::server {
namespace {

// This is a field of a struct, and the field that the struct is in. Items of lists and members of
// maps are in no field of their own.
struct Field {
  const Field* outer;
  std::string_view name;
  std::string_view of;  // the struct

  std::string path() const {
    return outer == nullptr ? std::string(name) : outer->path() + "." + std::string(name);
  }
};

std::string_view kind_of(const Json& value) {
  if (value.is_number()) return "number";
  return value.is_bool() ? "bool" : value.type_name();
}

bool fits_integer(const Json& value, std::string_view format) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (!value.is_int() || format == "int64") return value.is_int();
  return value.as_int() >= Limits::min() && value.as_int() <= Limits::max();
}

std::string check_base64(std::string_view text) {
  if (base64_decode(text)) return {};
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n";
  const std::size_t wrong = text.find_first_not_of(kAlphabet);
  return fmt::format("illegal base64 data at input byte {}",
                     wrong == text.npos ? text.size() / 4 * 4 : wrong);
}

std::string check_text(const std::string& text, std::string_view format) {
  if (format == "byte") return check_base64(text);
  if (format != "date-time" || Time::parse(text)) return {};
  return fmt::format("parsing time \"{}\" as \"2006-01-02T15:04:05Z07:00\"", text);
}

std::string check_quantity(const Json& value) {
  if (value.is_number()) return {};
  if (value.is_string() && Quantity::parse(value.as_string())) return {};
  return "quantities must match the regular expression "
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
}

class Decoder {
 public:
  explicit Decoder(const GoTypes& types) : types_(types) {}

  // `at` is nullptr for a whole object.
  std::string check(const Json& value, const Json& schema, const Field* at) const {
    if (value.is_null()) return {};
    const Json& type = resolved(schema);
    const std::string_view name = type.get_string("type");
    const std::string_view format = type.get_string("format");
    if (is_int_or_string(type)) {
      if (type.find("pattern") != nullptr) return check_quantity(value);
      if (value.is_string() || fits_integer(value, format)) return {};
    } else if (value.is_object() && name == "object") {
      return check_members(value, schema, at);
    } else if (value.is_array() && name == "array") {
      return check_items(value, type.get("items"), at);
    } else if (value.is_string() && name == "string") {
      return check_text(value.as_string(), format);
    } else if (name.empty() || value.type_name() == name ||
               (name == "number" && value.is_number())) {
      if (name != "integer" || fits_integer(value, format)) return {};
    }
    return misfit(value, schema, at);
  }

 private:
  static bool is_int_or_string(const Json& type) {
    return type.get_bool("x-kubernetes-int-or-string");
  }

  const Json& resolved(const Json& schema) const {
    const Json* target = types_.target_of ? types_.target_of(schema) : nullptr;
    return target == nullptr ? schema : *target;
  }

  static std::string_view struct_name(const Json& schema) {
    const std::string_view reference = schema.get_string("$ref");
    return reference.empty() ? schema.get_string("title") : reference.substr(2);  // "#/NAME"
  }

  std::string check_members(const Json& value, const Json& schema, const Field* at) const {
    const Json& type = resolved(schema);
    const Json& properties = type.get("properties");
    const Json& additional = type.get("additionalProperties");
    std::string problem;
    for (const auto& [name, member] : value.as_object()) {
      if (const Json* property = properties.find(name)) {
        const Field field{at, name, struct_name(schema)};
        problem = check(member, *property, &field);
      } else if (additional.is_object()) {
        problem = check(member, additional, at);
      }
      if (!problem.empty()) break;
    }
    return problem;
  }

  std::string check_items(const Json& value, const Json& items, const Field* at) const {
    std::string problem;
    for (const Json& item : value.as_array()) {
      problem = check(item, items, at);
      if (!problem.empty()) break;
    }
    return problem;
  }

  std::string type_name(const Json& schema) const {
    const Json& type = resolved(schema);
    const std::string_view name = type.get_string("type");
    const std::string_view format = type.get_string("format");
    if (is_int_or_string(type)) return "int32";
    if (type.find("properties") != nullptr)
      return fmt::format("{}.{}", types_.package, struct_name(schema));
    if (name == "array") return "[]" + type_name(type.get("items"));
    if (name == "object") return "map[string]" + type_name(type.get("additionalProperties"));
    if (name == "string") return format == "byte" ? "[]uint8" : "string";
    if (name == "integer") return std::string(format.empty() ? "int64" : format);
    return name == "boolean" ? "bool" : name == "number" ? "float64" : "interface {}";
  }

  std::string misfit(const Json& value, const Json& schema, const Field* at) const {
    const std::string type = type_name(schema);
    std::string kind(kind_of(value));
    if (value.is_number() && type.starts_with("int")) kind += " " + print_json(value);
    if (at == nullptr)
      return fmt::format("json: cannot unmarshal {} into Go value of type {}", kind, type);
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", kind,
                       at->of, at->path(), type);
  }

  const GoTypes& types_;
};

}  // namespace

std::string decoding_problem(const Json& value, const Json& schema, const GoTypes& types,
                             std::string_view member) {
  const Field field{nullptr, member, ""};
  return Decoder(types).check(value, schema, member.empty() ? nullptr : &field);
}

}  // namespace kube::server
