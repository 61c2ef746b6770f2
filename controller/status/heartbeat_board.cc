#include "controller/status/heartbeat_board.hh"

#include <utility>

namespace trainer {

void HeartbeatBoard::put(const std::string& uid, const kube::ObjectKey& trainjob, Facts facts) {
  const std::lock_guard lock(mutex_);
  facts_[uid] = std::move(facts);
  if (on_change_) on_change_(trainjob);
}

void HeartbeatBoard::renew(const std::string& uid, Facts facts) {
  const std::lock_guard lock(mutex_);
  facts_[uid] = std::move(facts);
}

void HeartbeatBoard::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  facts_.erase(uid);
}

HeartbeatBoard::Facts HeartbeatBoard::find(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto at = facts_.find(uid);
  return at == facts_.end() ? nullptr : at->second;
}

void HeartbeatBoard::listen(OnChange on_change) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(on_change);
}

}  // namespace trainer
