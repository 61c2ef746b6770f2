// The sink decodes the objects of a watch of few objects.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kube/client/watcher.hh"

namespace kube {

// Calls a handler for each object as it comes, also those of a list. An object that a later list
// lacks counts as removed. Concurrency: as WatchSink.
class ObjectSink final : public WatchSink {
 public:
  struct Handlers {
    std::function<void(Json object)> on_upsert;
    std::function<void(const std::string& uid)> on_remove;
    std::function<void()> on_listed;  // is called after each list
  };
  explicit ObjectSink(Handlers handlers) : handlers_(std::move(handlers)) {}

  void begin_list() override { listed_.emplace(); }
  bool upsert(std::string_view text) override {
    auto object = parse_json(text);
    if (!object) return false;
    const std::string uid = ObjectMeta::of(*object).uid;
    if (listed_) listed_->insert(uid);
    known_.insert(uid);
    handlers_.on_upsert(std::move(*object));
    return true;
  }
  void end_list() override {
    const std::set<std::string> known = std::exchange(known_, std::move(*listed_));
    listed_.reset();
    for (const std::string& uid : known)
      if (!known_.contains(uid)) handlers_.on_remove(uid);
    handlers_.on_listed();
  }
  bool remove(std::string_view text) override {
    const auto object = parse_json(text);
    if (!object) return false;
    const std::string uid = ObjectMeta::of(*object).uid;
    known_.erase(uid);
    handlers_.on_remove(uid);
    return true;
  }

 private:
  Handlers handlers_;
  std::set<std::string> known_;  // by uid
  std::optional<std::set<std::string>> listed_;
};

}  // namespace kube
