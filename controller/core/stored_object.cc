#include "controller/core/stored_object.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"
#include "runtimes/trainjob/difference.hh"

namespace trainer {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool has_owned_fields(const kube::Resource& resource) {
  return resource.kind == "JobSet";
}

// A TrainJob or a JobSet that nothing happens to for now. One that moves is read many times a
// second, and packing it would not pay.
bool is_idle(const kube::Json& object) {
  if (const auto* spec = object.find("spec"); spec && spec->get_bool("suspend")) return true;
  const auto* status = object.find("status");
  if (!status) return false;
  const auto& conditions = status->get_array("conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const kube::Json& condition) {
    const auto type = condition.get_string("type");
    const bool is_end = type == "Complete" || type == "Completed" || type == "Failed";
    return is_end && condition.get_string("status") == "True";
  });
}

std::shared_ptr<StoredObject> transform_header(const kube::Json& object) {
  const kube::ObjectMeta meta = kube::ObjectMeta::of(object);
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

// What is read of each version that comes; the rest is read when somebody looks at the object.
kube::JsonFilter head(bool with_fields) {
  using enum kube::JsonFilter::Members;
  std::vector<kube::JsonFilter> metadata{{"ownerReferences"}};
  if (with_fields) metadata.push_back(seen_of_managed_fields());
  const kube::JsonFilter conditions{"conditions", kInclude, {{"type"}, {"status"}}};
  return {"",
          kInclude,
          {{"apiVersion"},
           {"kind"},
           kube::metadata_with(std::move(metadata)),
           {"spec", kInclude, {{"suspend"}}},
           {"status", kInclude, {conditions}}}};
}

// The text that is kept of an object; `head` is what head() selects of it.
std::string body_of(std::string_view text, const kube::Json& head, const kube::Resource& resource) {
  static const kube::JsonFilter kKept{
      "",
      kube::JsonFilter::Members::kExclude,
      {{"metadata",
        kube::JsonFilter::Members::kExclude,
        {{"managedFields"},
         {"annotations", kube::JsonFilter::Members::kExclude, {{kLastApplied}}}}}}};
  std::string body = kube::filter_json(text, kKept, kube::JsonLimits().max_depth).value_or("");
  std::string missing;
  if (!head.find("apiVersion"))
    missing += "\"apiVersion\":" + kube::print_json(resource.api_version()) + ",";
  if (!head.find("kind")) missing += "\"kind\":" + kube::print_json(resource.kind) + ",";
  if (!missing.empty()) body.insert(body.find('{') + 1, missing);
  body.shrink_to_fit();
  return body;
}

}  // namespace

std::shared_ptr<const kube::Json> StoredObject::object() const {
  std::string room;
  auto parsed = kube::parse_json(body.text(room));
  return std::make_shared<const kube::Json>(parsed ? std::move(*parsed) : kube::Json());
}

std::shared_ptr<StoredObject> transform_stored(std::string_view text,
                                               const kube::Resource& resource,
                                               kube::TextCompressor* compressor) {
  static const kube::JsonFilter kHead = head(false);
  static const kube::JsonFilter kHeadWithFields = head(true);
  const bool with_fields = has_owned_fields(resource);
  const auto object = kube::parse_json(text, {}, with_fields ? kHeadWithFields : kHead);
  auto stored = object ? transform_header(*object) : nullptr;
  if (!stored) return nullptr;
  // What we own of it is known only as long as managedFields are there.
  if (with_fields) stored->owned_fields = owned_template_fields(*object);
  std::string body = body_of(text, *object, resource);
  stored->body = compressor && is_idle(*object) ? compressor->compress(std::move(body))
                                                : kube::CompressedText(std::move(body));
  return stored;
}

std::shared_ptr<StoredObject> transform_owner(std::string_view text) {
  static const kube::JsonFilter kHeader{
      "", kube::JsonFilter::Members::kInclude, {kube::metadata_with({{"ownerReferences"}})}};
  const auto object = kube::parse_json(text, {}, kHeader);
  return object ? transform_header(*object) : nullptr;
}

}  // namespace trainer
