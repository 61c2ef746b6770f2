#include "controller/kinds/trainjob/runtime_snapshots.hh"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "kube/model/digest.hh"
#include "kube/model/meta.hh"

namespace trainer {

using kube::Result;
using kube::Task;

// This is the caller that sends a request. When it ends, for whatever reason, the waiting callers
// are woken, and the next request can start.
struct RuntimeSnapshots::Sender {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Call> call;

  Sender(std::shared_ptr<Runtime> r, std::shared_ptr<Call> c)
      : runtime(std::move(r)), call(std::move(c)) {}
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() {
    if (!call->result) {
      call->result = kube::fail(kube::ErrorCode::kCancelled, "reading the runtime was cancelled");
    }
    call->done.notify();
    if (runtime->running == call) runtime->running = std::exchange(runtime->next, nullptr);
    if (runtime->next == call) runtime->next.reset();
  }
};

Task<void> RuntimeSnapshots::wait_for(std::shared_ptr<Call> call) {
  if (call->result) co_return;
  co_await call->done.wait();
  if (!call->result) throw boost::system::system_error(kube::asio::error::operation_aborted);
}

Task<Result<RuntimeSnapshots::Content>> RuntimeSnapshots::read_live(kube::Resource resource,
                                                                    kube::ObjectKey key) {
  sweep();  // jobs can ask for any name, so what is no longer needed is removed first
  auto& slot = runtimes_[resource.plural + "/" + key.to_string()];
  if (!slot) slot = std::make_shared<Runtime>();
  const auto runtime = slot;
  if (runtime->next) {
    const auto shared = runtime->next;
    co_await wait_for(shared);
    co_return *shared->result;
  }
  const auto call = std::make_shared<Call>(co_await kube::asio::this_coro::executor);
  const auto before = runtime->running;
  (before ? runtime->next : runtime->running) = call;
  const Sender sender(runtime, call);
  if (before) co_await wait_for(before);  // it was sent before this call, so it may be too old
  call->result = co_await send(std::move(resource), std::move(key), runtime);
  co_return *call->result;
}

Task<Result<RuntimeSnapshots::Content>> RuntimeSnapshots::send(kube::Resource resource,
                                                               kube::ObjectKey key,
                                                               std::shared_ptr<Runtime> runtime) {
  const auto live = co_await client_.get(std::move(resource), std::move(key));
  if (!live) co_return tl::unexpected(live.error());
  const auto meta = kube::ObjectMeta::of(*live);
  Content content = runtime->content.lock();
  if (!content || meta.uid != runtime->uid || meta.resource_version != runtime->resource_version) {
    content = keep(snapshot_of(*live));
    runtime->uid = meta.uid;
    runtime->resource_version = meta.resource_version;
    runtime->content = content;
  }
  co_return content;
}

RuntimeSnapshots::Content RuntimeSnapshots::of(std::string_view text, std::string_view own_hash) {
  const auto at = contents_.find(kube::sha256_hex(text));
  if (at != contents_.end()) {
    // The text may be beyond the limits for texts of other users, and still be the job's own
    // snapshot.
    auto known = at->second.lock();
    if (known && (known->is_object || known->is_own || at->first != own_hash)) return known;
  }
  return keep(snapshot_from(std::string(text), own_hash));
}

void RuntimeSnapshots::sweep() {
  if (std::max(contents_.size(), runtimes_.size()) < sweep_at_) return;
  std::erase_if(contents_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(runtimes_, [](const auto& entry) {
    return !entry.second->running && entry.second->content.expired();
  });
  sweep_at_ = 2 * std::max(contents_.size(), runtimes_.size()) + 64;
}

RuntimeSnapshots::Content RuntimeSnapshots::keep(Content content) {
  sweep();
  auto& known = contents_[content->hash];
  if (auto same = known.lock(); same && (same->is_object || !content->is_own)) return same;
  known = content;
  return content;
}

}  // namespace trainer
