// Snapshots of runtimes are read from the API server. Equal texts are kept in memory once.
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

  // Reads the current runtime by a request that is sent after this call, so a runtime that was
  // applied just before its job is found. Callers that come while a request is in flight share the
  // next one, so a thousand jobs take a few requests.
  kube::Task<kube::Result<Content>> read_live(kube::Resource resource, kube::ObjectKey key);
  // Returns the content of a snapshot's text, read by snapshot_from(). Calls with the same text get
  // the same object while it is in use.
  Content of(std::string_view text, std::string_view own_hash = {});

 private:
  // This is one request, for all callers that wait for it.
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
  // Forgets the contents that are not in use. It does so each time as many were added as were left
  // before.
  void sweep();

  kube::ApiClient& client_;
  std::map<std::string, std::shared_ptr<Runtime>> runtimes_;
  std::unordered_map<std::string, std::weak_ptr<const RuntimeSnapshot>> contents_;  // by hash
  std::size_t sweep_at_ = 64;
};

}  // namespace trainer
