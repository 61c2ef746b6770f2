// Numbers and names are those of the generated.proto files of k8s.io/apimachinery and k8s.io/api
// (v0.34).
#include "kube/server/protobuf.hh"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"

namespace kube::server {
namespace {

enum class Type { kString, kInteger, kBoolean, kMessage, kTexts, kData, kTime, kJson };

struct Field {
  std::uint32_t number;
  std::string_view name;
  Type type = Type::kString;  // kTexts, kData: maps to texts, and to bytes as base64
  std::span<const Field> message = {};
  bool is_list = false;
  bool has_presence = false;  // false and 0 have a meaning
};
using Message = std::span<const Field>;

constexpr Field kFieldsV1[] = {{1, "Raw", Type::kJson}};
constexpr Field kOwner[] = {{1, "kind"},
                            {3, "name"},
                            {4, "uid"},
                            {5, "apiVersion"},
                            {6, "controller", Type::kBoolean, {}, false, true},
                            {7, "blockOwnerDeletion", Type::kBoolean, {}, false, true}};
constexpr Field kManagedFields[] = {{1, "manager"},    {2, "operation"},
                                    {3, "apiVersion"}, {4, "time", Type::kTime},
                                    {6, "fieldsType"}, {7, "fieldsV1", Type::kMessage, kFieldsV1},
                                    {8, "subresource"}};
constexpr Field kObjectMeta[] = {
    {1, "name"},
    {2, "generateName"},
    {3, "namespace"},
    {4, "selfLink"},
    {5, "uid"},
    {6, "resourceVersion"},
    {7, "generation", Type::kInteger},
    {8, "creationTimestamp", Type::kTime},
    {9, "deletionTimestamp", Type::kTime},
    {10, "deletionGracePeriodSeconds", Type::kInteger, {}, false, true},
    {11, "labels", Type::kTexts},
    {12, "annotations", Type::kTexts},
    {13, "ownerReferences", Type::kMessage, kOwner, true},
    {14, "finalizers", Type::kString, {}, true},
    {17, "managedFields", Type::kMessage, kManagedFields, true}};
constexpr Field kMetadata{1, "metadata", Type::kMessage, kObjectMeta};

constexpr Field kNamespaceSpec[] = {{1, "finalizers", Type::kString, {}, true}};
constexpr Field kNamespaceStatus[] = {{1, "phase"}};
constexpr Field kNamespace[] = {kMetadata,
                                {2, "spec", Type::kMessage, kNamespaceSpec},
                                {3, "status", Type::kMessage, kNamespaceStatus}};
constexpr Field kConfigMap[] = {kMetadata,
                                {2, "data", Type::kTexts},
                                {3, "binaryData", Type::kData},
                                {4, "immutable", Type::kBoolean, {}, false, true}};
constexpr Field kSecret[] = {kMetadata,
                             {2, "data", Type::kData},
                             {3, "type"},
                             {4, "stringData", Type::kTexts},
                             {5, "immutable", Type::kBoolean, {}, false, true}};
constexpr Field kReference[] = {{1, "kind"},     {2, "namespace"},  {3, "name"},
                                {4, "uid"},      {5, "apiVersion"}, {6, "resourceVersion"},
                                {7, "fieldPath"}};
constexpr Field kLocalReference[] = {{1, "name"}};
constexpr Field kServiceAccount[] = {
    kMetadata,
    {2, "secrets", Type::kMessage, kReference, true},
    {3, "imagePullSecrets", Type::kMessage, kLocalReference, true},
    {4, "automountServiceAccountToken", Type::kBoolean, {}, false, true}};

constexpr Field kPreconditions[] = {{1, "uid"}, {2, "resourceVersion"}};
constexpr Field kDeleteOptions[] = {{1, "gracePeriodSeconds", Type::kInteger, {}, false, true},
                                    {2, "preconditions", Type::kMessage, kPreconditions},
                                    {3, "orphanDependents", Type::kBoolean, {}, false, true},
                                    {4, "propagationPolicy"},
                                    {5, "dryRun", Type::kString, {}, true}};

constexpr Field kResourceAttributes[] = {{1, "namespace"}, {2, "verb"},     {3, "group"},
                                         {4, "version"},   {5, "resource"}, {6, "subresource"},
                                         {7, "name"}};
constexpr Field kNonResourceAttributes[] = {{1, "path"}, {2, "verb"}};
constexpr Field kAccessSpec[] = {
    {1, "resourceAttributes", Type::kMessage, kResourceAttributes},
    {2, "nonResourceAttributes", Type::kMessage, kNonResourceAttributes}};
constexpr Field kAccessReview[] = {kMetadata, {2, "spec", Type::kMessage, kAccessSpec}};
constexpr Field kRulesSpec[] = {{1, "namespace"}};
constexpr Field kRulesReview[] = {kMetadata, {2, "spec", Type::kMessage, kRulesSpec}};
constexpr Field kSubjectReview[] = {kMetadata};

struct Kind {
  std::string_view api_version;  // "": any
  std::string_view kind;
  Message message;
};
constexpr Kind kKinds[] = {{"v1", "ConfigMap", kConfigMap},
                           {"v1", "Namespace", kNamespace},
                           {"v1", "Secret", kSecret},
                           {"v1", "ServiceAccount", kServiceAccount},
                           {"", "DeleteOptions", kDeleteOptions},
                           {"authorization.k8s.io/v1", "SelfSubjectAccessReview", kAccessReview},
                           {"authorization.k8s.io/v1", "SelfSubjectRulesReview", kRulesReview},
                           {"authentication.k8s.io/v1", "SelfSubjectReview", kSubjectReview}};

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::kBadRequest, "the body is no protobuf of Kubernetes: {}", what);
}

// This is one field of a message in its wire form.
struct WireField {
  std::uint32_t number = 0;
  bool is_text = false;  // has a length, else a number
  std::string_view text;
  std::uint64_t value = 0;
};

// Takes the fields of a message off its text, one after the other.
class WireReader {
 public:
  explicit WireReader(std::string_view text) : rest_(text) {}
  bool is_at_end() const { return rest_.empty(); }

  // nullopt: the text is not complete, or holds what no message holds.
  std::optional<WireField> next() {
    const auto tag = take_number();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > std::numeric_limits<std::uint32_t>::max())
      return std::nullopt;
    WireField field{static_cast<std::uint32_t>(*tag >> 3), false, {}, 0};
    switch (*tag & 7) {
      case 0:
        return take_value(field);
      case 1:
        return take(8) ? std::optional(field) : std::nullopt;
      case 2:
        return take_text(field);
      case 5:
        return take(4) ? std::optional(field) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> take_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return number;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::optional<WireField> take_value(WireField field) {
    const auto value = take_number();
    if (!value) return std::nullopt;
    field.value = *value;
    return field;
  }
  std::optional<WireField> take_text(WireField field) {
    const auto size = take_number();
    const auto text = size ? take(*size) : std::nullopt;
    if (!text) return std::nullopt;
    field.is_text = true;
    field.text = *text;
    return field;
  }

  std::string_view rest_;
};

bool has_length(Type type) {
  return type != Type::kInteger && type != Type::kBoolean;
}

Result<Json> read_message(std::string_view text, Message message);

Result<Json> read_text(std::string_view text) {
  if (!is_utf8(text)) return broken("a text is not UTF-8");
  return Json(text);
}

// Reads seconds (1) and nanoseconds (2) since 1970; null for the zero time, which is an empty
// message.
Result<Json> read_time(std::string_view text) {
  std::optional<std::int64_t> seconds;
  for (WireReader reader(text); !reader.is_at_end();) {
    const auto field = reader.next();
    if (!field) return broken("a time breaks off");
    if (field->number == 1) seconds = static_cast<std::int64_t>(field->value);
  }
  constexpr std::int64_t kLastYear = 253402300799;  // the end of 9999
  if (!seconds || *seconds < -62135596800) return Json();
  return Json(Time::from_seconds(std::min(*seconds, kLastYear)).to_string());
}

// Reads one entry of a map: the key (1) and the value (2).
Result<void> read_entry(std::string_view text, Type type, Json& map) {
  std::string_view key, value;
  for (WireReader reader(text); !reader.is_at_end();) {
    const auto field = reader.next();
    if (!field) return broken("an entry of a map breaks off");
    if (field->number == 1) key = field->text;
    if (field->number == 2) value = field->text;
  }
  if (!is_utf8(key)) return broken("a key is not UTF-8");
  if (type == Type::kData) {
    map.set(key, base64_encode(value));
    return {};
  }
  auto read = read_text(value);
  if (!read) return tl::unexpected(std::move(read.error()));
  map.set(key, *std::move(read));
  return {};
}

Result<Json> read_value(const WireField& wire, const Field& field) {
  switch (field.type) {
    case Type::kString:
      return read_text(wire.text);
    case Type::kInteger:
      return Json(static_cast<std::int64_t>(wire.value));
    case Type::kBoolean:
      return Json(wire.value != 0);
    case Type::kMessage:
      return read_message(wire.text, field.message);
    case Type::kTime:
      return read_time(wire.text);
    case Type::kJson:
      return parse_json(wire.text, kObjectLimits);
    case Type::kTexts:
    case Type::kData:
      break;
  }
  return Json();
}

// Returns whether the value is the one that a Go struct without pointers holds if nothing was set.
bool is_zero(const Json& value, const Field& field) {
  if (field.has_presence) return false;
  if (value.is_int()) return value.as_int() == 0;
  if (value.is_bool()) return !value.as_bool();
  return value.empty();
}

Result<void> read_field(const WireField& wire, const Field& field, Json& out) {
  if (wire.is_text != has_length(field.type)) return broken(field.name);
  if (field.type == Type::kTexts || field.type == Type::kData)
    return read_entry(wire.text, field.type, out[field.name]);
  auto value = read_value(wire, field);
  if (!value) return tl::unexpected(std::move(value.error()));
  if (field.is_list) {
    out[field.name].push_back(*std::move(value));
  } else if (!is_zero(*value, field)) {
    out.set(field.name, *std::move(value));
  }
  return {};
}

Result<Json> read_message(std::string_view text, Message message) {
  Json out = Json::object();
  for (WireReader reader(text); !reader.is_at_end();) {
    const auto wire = reader.next();
    if (!wire) return broken("it breaks off");
    const auto at = std::ranges::find(message, wire->number, &Field::number);
    if (at == message.end()) continue;
    if (at->type == Type::kJson) return read_value(*wire, *at);  // FieldsV1 is its only member
    if (auto done = read_field(*wire, *at, out); !done)
      return tl::unexpected(std::move(done.error()));
  }
  return out;
}

}  // namespace

Result<Json> decode_protobuf(std::string_view body) {
  constexpr std::string_view kMagic("k8s\0", 4);
  constexpr Field kTypeMeta[] = {{1, "apiVersion"}, {2, "kind"}};
  if (!body.starts_with(kMagic)) return broken("it does not begin with \"k8s\"");
  std::string_view raw, types;
  for (WireReader reader(body.substr(kMagic.size())); !reader.is_at_end();) {
    const auto field = reader.next();
    if (!field) return broken("it breaks off");
    if (field->number == 1) types = field->text;
    if (field->number == 2) raw = field->text;
  }
  auto head = read_message(types, kTypeMeta);
  if (!head) return head;
  const std::string_view api_version = head->get_string("apiVersion");
  const std::string_view kind = head->get_string("kind");
  for (const Kind& known : kKinds) {
    if (kind != known.kind) continue;
    if (!known.api_version.empty() && api_version != known.api_version) continue;
    auto object = read_message(raw, known.message);
    if (!object) return object;
    object->set("apiVersion", api_version).set("kind", kind);
    return object;
  }
  return fail(ErrorCode::kUnsupported,
              "{} {} cannot be read as protobuf: send it as JSON or YAML, for example with "
              "\"kubectl create -f FILE\"",
              api_version, kind);
}

}  // namespace kube::server
