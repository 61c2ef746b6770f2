// Statuses that are on their way to the API server.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/model/meta.hh"

namespace kube {

// The watch may bring a status of this process before its answer does, so while one is on its way
// only the versions of its object are recorded. Keys and versions only. Concurrency: one thread.
class PendingStatusWrites {
 public:
  struct Write {
    ObjectKey object_key;
    std::vector<std::string> versions;  // that the watch has brought meanwhile
  };
  // What the watch has brought by the end of a write.
  enum class Outcome { kNothing, kOwnWrite, kOtherWrites };

  // Before the status is sent; the result is kept until end(). A write whose frame is destroyed
  // before that is forgotten: the next event of its object counts as usual.
  std::shared_ptr<Write> begin(const ObjectKey& key);
  // True where a write to this object is on its way, and the version has been recorded.
  bool record(const ObjectKey& key, const std::string& version);
  // `written_version`: of the answer; "" where nothing was written.
  Outcome end(const Write& write, std::string_view written_version);

 private:
  std::unordered_map<ObjectKey, std::weak_ptr<Write>, ObjectKeyHash> writes_;
};

}  // namespace kube
