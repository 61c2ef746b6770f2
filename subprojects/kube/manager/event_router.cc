#include "kube/manager/event_router.hh"

#include <utility>

namespace kube {

std::size_t EventRouter::add_controller(Enqueue enqueue) {
  queues_.push_back(std::move(enqueue));
  return queues_.size() - 1;
}

const ObjectKey* EventRouter::find_owner(std::size_t controller, std::string_view ns,
                                         const std::string& uid) const {
  const auto at = owners_.find(uid);
  if (at == owners_.end()) return nullptr;
  const Owner& owner = at->second;
  return owner.controller == controller && owner.key.ns == ns ? &owner.key : nullptr;
}

bool EventRouter::enqueue_owner(std::size_t controller, std::string_view ns, const std::string& uid,
                                Debounce debounce) {
  const ObjectKey* const key = find_owner(controller, ns, uid);
  if (key) enqueue(controller, *key, debounce);
  return key != nullptr;
}

std::optional<Debounce> EventRouter::debounce_of_change() const {
  switch (source_) {
    case ChangeSource::kOwnCounters:
      return std::nullopt;
    case ChangeSource::kOwnStatus:
      return Debounce::kShort;
    case ChangeSource::kOthers:
      break;
  }
  return Debounce::kNone;
}

}  // namespace kube
