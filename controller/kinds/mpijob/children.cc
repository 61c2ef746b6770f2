#include "controller/kinds/mpijob/children.hh"

#include <memory>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/mpijob/plan.hh"

namespace trainer::mpijob {

StoredCache::Transform child_transform(const kube::Resource& resource) {
  return [resource, seen = seen_of_child(resource)](
             std::string_view text) -> std::shared_ptr<kube::StoredObject> {
    auto stored = kube::transform_owner(text);
    if (!stored || stored->controller_kind != kMPIJobs.kind) return stored;
    auto object = kube::parse_json(text, kube::kObjectLimits, seen);
    if (!object) return nullptr;
    std::string view = kube::print_json(view_of_child(resource, std::move(*object)));
    if (view.size() <= kMaxChildText) stored->body = kube::CompressedText(std::move(view));
    return stored;
  };
}

}  // namespace trainer::mpijob
