#include "controller/local/custom_kinds.hh"

#include <algorithm>
#include <utility>

#include "controller/local/kinds/kinds.hh"
#include "kube/model/resources.hh"

namespace trainer {

CustomKinds::CustomKinds(kube::server::ServedKinds& kinds, kube::server::ObjectStore& store,
                         const kube::Log& log)
    : kinds_(kinds), store_(store), log_(log), own_(kinds.size()) {
  kinds_.reserve(kMaxKinds);
  for (const auto& [key, definition] : store_.all(kube::kCustomResourceDefinitions))
    serve(*definition.get());
  store_.subscribe([this](const kube::server::Change& change) {
    if (change.after && change.resource->plural == kube::kCustomResourceDefinitions.plural)
      serve(*change.after);
  });
}

void CustomKinds::serve(const kube::Json& definition) {
  for (kube::server::ServedKind& kind : local::kinds_of_crd(definition)) {
    const kube::Resource& resource = kind.resource;
    const auto is_same = [&resource](const kube::server::ServedKind& other) {
      return other.resource.has_same_objects(resource);
    };
    const auto own_end = kinds_.begin() + static_cast<std::ptrdiff_t>(own_);
    if (std::any_of(kinds_.begin(), own_end, is_same)) return;
    const auto known = std::find_if(own_end, kinds_.end(), [&](const auto& other) {
      return is_same(other) && other.resource.version == resource.version;
    });
    if (known != kinds_.end()) {
      *known = std::move(kind);
    } else if (kinds_.size() < kMaxKinds) {
      store_.add_collection(resource);
      kinds_.push_back(std::move(kind));
    } else {
      log_.warn("kind is not served",
                {{"kind", resource.kind}, {"why", "there are too many kinds"}});
    }
  }
}

}  // namespace trainer
