#include "kube/manager/pending_status_writes.hh"

namespace kube {

std::shared_ptr<PendingStatusWrites::Write> PendingStatusWrites::begin(const ObjectKey& key) {
  auto write = std::make_shared<Write>(Write{key, {}});
  writes_[key] = write;
  return write;
}

bool PendingStatusWrites::record(const ObjectKey& key, const std::string& version) {
  const auto at = writes_.find(key);
  const auto write = at == writes_.end() ? nullptr : at->second.lock();
  if (write) write->versions.push_back(version);
  return write != nullptr;
}

PendingStatusWrites::Outcome PendingStatusWrites::end(const Write& write,
                                                      std::string_view written_version) {
  writes_.erase(write.object_key);
  if (write.versions.empty()) return Outcome::kNothing;
  // A status is written only to the version it was planned from: nothing came before it.
  const bool is_own_write = write.versions.size() == 1 && write.versions.front() == written_version;
  return is_own_write ? Outcome::kOwnWrite : Outcome::kOtherWrites;
}

}  // namespace kube
