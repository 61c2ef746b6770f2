#include "controller/core/stored_object.hh"

#include <algorithm>

#include "kube/model/json_text.hh"
#include "runtimes/trainjob/views.hh"

namespace trainer {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool has_owned_fields(const kube::Resource& resource) {
  return resource.kind == "JobSet";
}

// A TrainJob or a JobSet that nothing happens to for now. One that moves is read many times a
// second, and packing it would not pay.
bool is_at_rest(const kube::Json& object) {
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

std::shared_ptr<StoredObject> project_header(const kube::Json& object) {
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

}  // namespace

kube::Json StoredObject::object() const {
  std::string room;
  auto parsed = kube::parse_json(text.text(room));
  return parsed ? std::move(*parsed) : kube::Json();
}

std::shared_ptr<StoredObject> project_stored(std::string_view text, const kube::Resource& resource,
                                             kube::TextPacker* packer) {
  static const kube::JsonSelection kUsual = kube::without_managed_fields();
  auto object = kube::parse_json(text, {}, has_owned_fields(resource) ? seen_of_jobsets() : kUsual);
  return object ? project_stored(std::move(*object), resource, packer) : nullptr;
}

std::shared_ptr<StoredObject> project_stored(kube::Json object, const kube::Resource& resource,
                                             kube::TextPacker* packer) {
  auto stored = project_header(object);
  if (!stored) return nullptr;
  // What we own of it is known only as long as managedFields are there.
  if (has_owned_fields(resource)) stored->owned_fields = owned_template_fields(object);
  object.set("apiVersion", resource.api_version()).set("kind", resource.kind);
  if (auto* meta = object.find("metadata")) {
    meta->erase("managedFields");
    if (auto* annotations = meta->find("annotations")) {
      annotations->erase(kLastApplied);
      if (annotations->empty()) meta->erase("annotations");
    }
  }
  std::string text = kube::print_json(object);
  stored->text = packer && is_at_rest(object) ? packer->pack(std::move(text))
                                              : kube::PackedText(std::move(text));
  return stored;
}

std::shared_ptr<StoredObject> project_owner(const kube::Json& object) {
  return project_header(object);
}

std::shared_ptr<StoredObject> project_owner(std::string_view text) {
  static const kube::JsonSelection kHeader{
      "", kube::JsonSelection::Members::kOnly, {kube::metadata_with({{"ownerReferences"}})}};
  const auto object = kube::parse_json(text, {}, kHeader);
  return object ? project_header(*object) : nullptr;
}

}  // namespace trainer
