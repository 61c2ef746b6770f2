// Snapshots of runtimes: read from the API server; equal texts are kept in memory once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"

namespace trainer {

// Concurrency: the control loops' thread.
class RuntimeSnapshots {
 public:
  using Content = std::shared_ptr<const RuntimeSnapshot>;
  explicit RuntimeSnapshots(kube::ApiClient& client) : client_(client) {}
  RuntimeSnapshots(const RuntimeSnapshots&) = delete;
  RuntimeSnapshots& operator=(const RuntimeSnapshots&) = delete;

  // The current runtime, read by a request that was sent after this call, so a runtime that was
  // applied just before its job is found. Callers that come while a request is in flight share the
  // next one, so a thousand jobs take a few requests.
  kube::Task<kube::Result<Content>> read_live(kube::Resource resource, kube::ObjectKey key);
  // The content of a snapshot's text, read as by snapshot_from(); the same object for the same text
  // while it is in use.
  Content of(std::string_view text, std::string_view own_hash = {});

 private:
  // One request, for all callers that wait for it.
  struct Call {
    explicit Call(kube::asio::any_io_executor executor) : done(std::move(executor)) {}
    kube::Notifier done;  // notified when there is a `result`
    std::optional<kube::Result<Content>> result;
  };
  // The requests for one runtime, and what the last one found.
  struct Runtime {
    std::shared_ptr<Call> running;
    std::shared_ptr<Call> next;  // its first caller sends it when `running` is done
    std::string uid;
    std::string resource_version;
    std::weak_ptr<const RuntimeSnapshot> content;
  };
  struct Sender;
  static kube::Task<void> wait_for(std::shared_ptr<Call> call);
  kube::Task<kube::Result<Content>> send(kube::Resource resource, kube::ObjectKey key,
                                         std::shared_ptr<Runtime> runtime);
  Content keep(Content content);
  // Forgets what is not in use, each time as much has been added as was left.
  void sweep();

  kube::ApiClient& client_;
  std::map<std::string, std::shared_ptr<Runtime>> runtimes_;
  std::unordered_map<std::string, std::weak_ptr<const RuntimeSnapshot>> contents_;  // by hash
  std::size_t sweep_at_ = 64;
};

}  // namespace trainer
