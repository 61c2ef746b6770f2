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

// About the bytes of its text, counted until there are `enough`.
std::size_t rough_size(const kube::Json& value, std::size_t enough) {
  constexpr std::size_t kPunctuation = 3;
  if (value.is_string()) return value.as_string().size() + kPunctuation;
  std::size_t size = kPunctuation;
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object()) {
      if (size >= enough) break;
      size += name.size() + kPunctuation + rough_size(member, enough - size);
    }
  } else if (value.is_array()) {
    for (const auto& item : value.as_array()) {
      if (size >= enough) break;
      size += rough_size(item, enough - size);
    }
  }
  return size;
}

StoredBody keep(kube::Json object, kube::TextPacker* packer) {
  if (packer && !is_at_rest(object)) return StoredBody::fresh(std::move(object));
  std::string text = kube::print_json(object);
  return StoredBody(packer ? packer->pack(std::move(text)) : kube::PackedText(std::move(text)));
}

}  // namespace

StoredBody StoredBody::fresh(kube::Json object) {
  StoredBody body;
  body.fresh_size_ = rough_size(object, StoredObject::kLargestFresh + 1);
  body.fresh_ = std::make_shared<const kube::Json>(std::move(object));
  if (body.fresh_size_ > StoredObject::kLargestFresh) body.settle();
  return body;
}

std::shared_ptr<const kube::Json> StoredBody::object() const {
  if (fresh_) return fresh_;
  std::string room;
  auto parsed = kube::parse_json(text_.text(room));
  return std::make_shared<const kube::Json>(parsed ? std::move(*parsed) : kube::Json());
}

kube::PackedText StoredBody::text() const {
  return fresh_ ? kube::PackedText(kube::print_json(*fresh_)) : text_;
}

void StoredBody::settle() {
  text_ = text();
  fresh_.reset();
}

void FreshObjects::add(std::shared_ptr<StoredObject> stored) {
  if (!stored->body.is_fresh()) return;
  auto& slot = ring_[next_];
  next_ = (next_ + 1) % kMost;
  // What nobody else holds has been replaced by a newer version already.
  if (slot && slot.use_count() > 1) slot->body.settle();
  slot = std::move(stored);
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
  stored->body = keep(std::move(object), packer);
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
