// The serving thread leaves here what heartbeats say of a job, and the control loops read it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kube/model/meta.hh"
#include "runtimes/trainjob/stall.hh"

namespace trainer {

// Facts are kept by the uid of the TrainJob, the last of each. HeartbeatStore bounds their number.
// Concurrency: all members from any thread.
class HeartbeatBoard {
 public:
  using Facts = std::shared_ptr<const HeartbeatFacts>;
  using OnChange = std::function<void(const kube::ObjectKey& trainjob)>;

  void put(const std::string& uid, const kube::ObjectKey& trainjob, Facts facts);
  // Replaces facts by newer ones that change nothing yet: `on_change` is not called.
  void renew(const std::string& uid, Facts facts);
  void forget(const std::string& uid);
  // Returns nullptr if none are known.
  Facts find(const std::string& uid) const;

  // `on_change` is called on the thread of put(), while the board is locked: it must only post.
  // nullptr ends the calls; none is running when this returns.
  void listen(OnChange on_change);

  // Heartbeats are for the replica that leads. A replica never stops leading: its process ends.
  void set_leading() { is_leading_ = true; }
  bool is_leading() const { return is_leading_; }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Facts> facts_;
  OnChange on_change_;
  std::atomic<bool> is_leading_{false};
};

}  // namespace trainer
