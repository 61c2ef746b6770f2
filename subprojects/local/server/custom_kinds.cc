#include "local/server/custom_kinds.hh"

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "local/kinds/kinds.hh"

namespace trainer {

CustomKinds::CustomKinds(kube::server::ServedKinds& kinds, kube::server::ObjectStore& store,
                         const kube::Log& log)
    : kinds_(kinds), store_(store), log_(log), own_(kinds.size()) {
  kinds_.reserve(kMaxKinds);
  for (const auto& [key, definition] : store_.all(kube::kCustomResourceDefinitions))
    serve(*definition.get());
  store_.subscribe([this](const kube::server::Change& change) {
    if (!change.resource->has_same_objects(kube::kCustomResourceDefinitions)) return;
    if (change.after) {
      serve(*change.after);
    } else {
      forget(*change.before);
    }
  });
}

bool CustomKinds::is_own(const kube::Resource& resource) const {
  return std::any_of(
      kinds_.begin(), kinds_.begin() + static_cast<std::ptrdiff_t>(own_),
      [&resource](const auto& other) { return other.resource.has_same_objects(resource); });
}

// The versions of a kind share their objects, so one version is enough.
void CustomKinds::forget(const kube::Json& definition) {
  for (const kube::server::ServedKind& kind : local::kinds_of_crd(definition))
    if (!is_own(kind.resource)) gone_.push_back(kind.resource);
}

bool CustomKinds::has_orphans() const {
  return std::ranges::any_of(gone_, [this](const auto& each) { return !store_.all(each).empty(); });
}

void CustomKinds::erase_orphans() {
  constexpr std::size_t kMost = 100;
  std::vector<kube::ObjectKey> keys;
  for (const kube::Resource& resource : gone_) {
    for (const auto& [key, object] : store_.all(resource))
      if (keys.size() < kMost) keys.push_back(key);
    for (const kube::ObjectKey& key : std::exchange(keys, {})) store_.erase(resource, key);
  }
}

void CustomKinds::serve(const kube::Json& definition) {
  for (kube::server::ServedKind& kind : local::kinds_of_crd(definition)) {
    const kube::Resource& resource = kind.resource;
    if (is_own(resource)) return;
    std::erase_if(gone_, [&resource](const auto& each) { return each.has_same_objects(resource); });
    const auto is_same = [&resource](const kube::server::ServedKind& other) {
      return other.resource.has_same_objects(resource);
    };
    const auto own_end = kinds_.begin() + static_cast<std::ptrdiff_t>(own_);
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
