#include "kube/manager/stored_object.hh"

#include <algorithm>
#include <utility>

#include "kube/model/json_text.hh"

namespace kube {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool is_idle(const Json& object) {
  const auto is_end = [](const Json& condition) {
    const auto type = condition.get_string("type");
    const bool is_end_type =
        type == "Complete" || type == "Completed" || type == "Succeeded" || type == "Failed";
    return is_end_type && condition.get_string("status") == "True";
  };
  const Json& spec = object.get("spec");
  return spec.get_bool("suspend") || spec.get("runPolicy").get_bool("suspend") ||
         std::ranges::any_of(object.get("status").get_array("conditions"), is_end);
}

std::shared_ptr<StoredObject> transform_header(const Json& object) {
  const ObjectMeta meta = ObjectMeta::of(object);
  if (meta.name.empty() || meta.resource_version.empty()) return nullptr;
  auto stored = std::make_shared<StoredObject>();
  stored->object_key = meta.key();
  stored->uid = meta.uid;
  stored->resource_version = meta.resource_version;
  if (const auto* controller = meta.controller()) {
    stored->controller_uid = controller->uid;
    stored->controller_kind = controller->kind;
  }
  return stored;
}

// Returns the members that are parsed for each version; the rest is parsed when the object is
// decoded.
JsonFilter head_of(const std::optional<Fingerprint>& fingerprint) {
  using enum JsonFilter::Members;
  std::vector<JsonFilter> metadata{{"ownerReferences"}};
  if (fingerprint)
    metadata.insert(metadata.end(), fingerprint->of_metadata.begin(),
                    fingerprint->of_metadata.end());
  const JsonFilter conditions{"conditions", kInclude, {{"type"}, {"status"}}};
  return {"",
          kInclude,
          {{"apiVersion"},
           {"kind"},
           metadata_with(std::move(metadata)),
           {"spec", kInclude, {{"suspend"}, {"runPolicy", kInclude, {{"suspend"}}}}},
           {"status", kInclude, {conditions}}}};
}

// Returns the text that is kept of an object; `head` has the members that head_of() includes.
std::string body_of(std::string_view text, const Json& head, const Resource& resource) {
  using enum JsonFilter::Members;
  static const JsonFilter kKept{
      "",
      kExclude,
      {{"metadata", kExclude, {{"managedFields"}, {"annotations", kExclude, {{kLastApplied}}}}}}};
  std::string body = filter_json(text, kKept, JsonLimits().max_depth).value_or("");
  std::string missing;
  if (!head.find("apiVersion"))
    missing += "\"apiVersion\":" + print_json(resource.api_version()) + ",";
  if (!head.find("kind")) missing += "\"kind\":" + print_json(resource.kind) + ",";
  if (!missing.empty()) body.insert(body.find('{') + 1, missing);
  body.shrink_to_fit();
  return body;
}

}  // namespace

std::shared_ptr<const Json> StoredObject::object() const {
  std::string room;
  auto parsed = parse_json(body.text(room), kObjectLimits);
  return std::make_shared<const Json>(parsed ? std::move(*parsed) : Json());
}

StoredObjectTransform::StoredObjectTransform(Resource resource,
                                             std::optional<Fingerprint> fingerprint)
    : resource_(std::move(resource)),
      fingerprint_(std::move(fingerprint)),
      head_(head_of(fingerprint_)),
      compressor_(std::make_shared<TextCompressor>()) {}

std::shared_ptr<StoredObject> StoredObjectTransform::operator()(std::string_view text) {
  const auto object = parse_json(text, kObjectLimits, head_);
  auto stored = object ? transform_header(*object) : nullptr;
  if (!stored) return nullptr;
  if (fingerprint_) stored->fingerprint = fingerprint_->compute(*object);
  std::string body = body_of(text, *object, resource_);
  const bool is_packed = is_idle(*object) || body.size() > TextCompressor::kLong;
  stored->body =
      is_packed ? compressor_->compress(std::move(body)) : CompressedText(std::move(body));
  return stored;
}

std::shared_ptr<StoredObject> transform_owner(std::string_view text) {
  static const JsonFilter kHeader{
      "", JsonFilter::Members::kInclude, {metadata_with({{"ownerReferences"}})}};
  const auto object = parse_json(text, kObjectLimits, kHeader);
  return object ? transform_header(*object) : nullptr;
}

}  // namespace kube
