// These status writes are in flight.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/model/meta.hh"

namespace kube {

// The event of a status write may arrive before its answer. So while the write is in flight, the
// versions of its object are only recorded. Holds keys and versions only. Concurrency: one thread.
class PendingStatusWrites {
 public:
  struct Write {
    ObjectKey object_key;
    std::vector<std::string> versions;  // the versions that the watch has brought meanwhile
  };
  // The outcome says which versions the watch has brought by the end of a write.
  enum class Outcome { kNothing, kOwnWrite, kOtherWrites };

  // Call this before the status is sent, and keep the result until end(). A write whose coroutine
  // is destroyed before that has no effect on later events.
  std::shared_ptr<Write> begin(const ObjectKey& key) {
    auto write = std::make_shared<Write>(Write{key, {}});
    writes_[key] = write;
    return write;
  }
  // Returns true if a write to this object is in flight; then the version has been recorded.
  bool record(const ObjectKey& key, const std::string& version) {
    const auto at = writes_.find(key);
    const auto write = at == writes_.end() ? nullptr : at->second.lock();
    if (write) write->versions.push_back(version);
    return write != nullptr;
  }
  // `written_version` is that of the answer; "" if nothing was written.
  Outcome end(const Write& write, std::string_view written_version) {
    writes_.erase(write.object_key);
    if (write.versions.empty()) return Outcome::kNothing;
    // A status is written only to the version from which it was planned: no other write came before
    // it.
    const bool is_own = write.versions.size() == 1 && write.versions.front() == written_version;
    return is_own ? Outcome::kOwnWrite : Outcome::kOtherWrites;
  }

 private:
  std::unordered_map<ObjectKey, std::weak_ptr<Write>, ObjectKeyHash> writes_;
};

}  // namespace kube
