#include "local/server/watches.hh"

#include <algorithm>
#include <utility>

namespace trainer {

using kube::Task;
using kube::server::Change;

namespace {

// The interval is kube-apiserver's: clients go on from a bookmark if nothing else has changed.
constexpr std::chrono::seconds kBookmarks(60);
constexpr std::size_t kPiece = 64U << 10;

}  // namespace

struct Watches::Open {
  Open(Watches& watches, kube::server::Watch watch_)
      : all(watches),
        watch(std::move(watch_)),
        changed(watches.executor_),
        end(watches.clock_.steady() + watch.timeout) {
    at = all.open_.insert(all.open_.end(), this);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() { all.open_.erase(at); }

  Watches& all;
  kube::server::Watch watch;
  kube::Notifier changed;
  kube::Clock::Steady end;
  std::string pending;  // lines that are not sent yet
  bool is_too_slow = false;
  std::list<Open*>::iterator at;

  void add(const Change& change) {
    if (is_too_slow || !watch.kind->resource.has_same_objects(*change.resource)) return;
    const std::string line = watch.line(change);
    if (line.empty()) return;
    is_too_slow = pending.size() + line.size() > std::max(all.max_bytes_, line.size());
    if (!is_too_slow) pending += line;
    changed.notify();
  }
  bool is_over() const {
    return watch.is_ended || is_too_slow || all.is_stopping_ || all.clock_.steady() >= end;
  }
};

Watches::Watches(kube::asio::any_io_executor executor, kube::Clock& clock,
                 kube::server::ObjectStore& store, std::size_t max_bytes)
    : executor_(std::move(executor)), clock_(clock), store_(store), max_bytes_(max_bytes) {
  store_.subscribe([this](const Change& change) { on_change(change); });
}

void Watches::on_change(const Change& change) {
  for (Open* each : open_) each->add(change);
}

kube::StreamBody Watches::open(kube::server::Watch watch) {
  return [this, open = std::make_shared<Open>(*this, std::move(watch))](kube::WriteBody write) {
    return send(open, std::move(write));
  };
}

void Watches::stop() {
  is_stopping_ = true;
  for (Open* each : open_) each->changed.notify();
}

Task<void> Watches::send(std::shared_ptr<Open> open, kube::WriteBody write) {
  std::string piece;
  for (std::string& line : open->watch.initial) {
    piece += std::exchange(line, std::string());
    if (piece.size() >= kPiece && !co_await write(std::exchange(piece, std::string()))) co_return;
  }
  open->watch.initial.clear();
  // A client waits for the head of the answer, also if nothing follows.
  if (!co_await write(std::move(piece))) co_return;
  auto bookmark_at = clock_.steady() + kBookmarks;
  for (;;) {
    if (!open->pending.empty()) {
      if (!co_await write(std::exchange(open->pending, std::string()))) co_return;
      continue;
    }
    const bool is_over = open->is_over();
    const bool is_in_order = !open->is_too_slow && !open->watch.is_ended;
    if (open->watch.bookmark && is_in_order && (is_over || clock_.steady() >= bookmark_at)) {
      bookmark_at = clock_.steady() + kBookmarks;
      if (!co_await write(open->watch.bookmark(store_.version()))) co_return;
      if (!is_over || !open->pending.empty()) continue;
    }
    if (is_over) co_return;
    co_await open->changed.wait_until(clock_, std::min(open->end, bookmark_at));
  }
}

}  // namespace trainer
