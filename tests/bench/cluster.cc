#include "tests/bench/cluster.hh"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>

#include "kube/client/watcher.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer::bench {

using kube::Json;
using kube::Task;

namespace {

kube::TransportLimits wide() {
  kube::TransportLimits limits;
  limits.max_in_flight = 64;
  return limits;
}

void fail_task(std::string_view task, std::string_view what) {
  throw std::runtime_error(std::string(task) + ": " + std::string(what));
}

}  // namespace

double seconds_since(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

bool Tally::upsert(std::string_view text) {
  const auto object = kube::parse_json(text);
  if (!object) return false;
  const auto now = Steady::now();
  changed_ = now;
  auto& counts = objects_[std::string(object->find_path({"metadata", "name"})->as_string())];
  const bool before = counts;
  counts = counts_(*object);
  if (counts != before) {
    counted_ = counts ? counted_ + 1 : counted_ - 1;
    reached_ = now;
  }
  if (on_put) on_put(*object);
  return true;
}

bool Tally::remove(std::string_view text) {
  const auto object = kube::parse_json(text);
  if (!object) return false;
  const auto at = objects_.find(object->find_path({"metadata", "name"})->as_string());
  if (at == objects_.end()) return true;
  if (at->second) --counted_;
  objects_.erase(at);
  return true;
}

Cluster::Cluster(const kube::ClientConfig& config)
    : io_(1),
      transport_(kube::make_transport(io_, config, wide())),
      client_(*transport_, clock_, random_) {}

Cluster::~Cluster() = default;

void Cluster::run(Task<void> task) {
  std::exception_ptr thrown;
  kube::asio::co_spawn(io_, std::move(task), [this, &thrown](std::exception_ptr error) {
    thrown = error;
    io_.stop();
  });
  io_.restart();
  io_.run();
  if (thrown) std::rethrow_exception(thrown);
}

namespace {

Task<void> take_turns(int& next, int count, const std::function<Task<void>(int)>& work) {
  while (next < count) {
    const int mine = next++;
    co_await work(mine);
  }
}

}  // namespace

Task<void> Cluster::for_each(int count, int width, std::function<Task<void>(int)> work) {
  int next = 0;
  std::string failure;
  kube::TaskGroup group(io_.get_executor(), [&failure](std::string_view, std::string_view what) {
    failure = std::string(what);
  });
  for (int i = 0; i < width; ++i) group.spawn("worker", take_turns(next, count, work));
  co_await group.join();
  if (!failure.empty()) throw std::runtime_error(failure);
}

std::unique_ptr<kube::TaskGroup> Cluster::watch(const kube::Resource& resource,
                                                const std::string& ns, Tally& tally) {
  auto group = std::make_unique<kube::TaskGroup>(io_.get_executor(), fail_task);
  kube::WatchOptions options;
  options.ns = ns;
  group->spawn("watch " + resource.plural,
               kube::run_watch(client_, resource, tally, std::move(options)));
  return group;
}

Task<void> Cluster::wait_until(std::function<bool()> is_true, std::chrono::seconds limit,
                               std::string what) {
  const auto end = Steady::now() + limit;
  while (!is_true()) {
    if (Steady::now() > end) throw std::runtime_error("timed out: " + what);
    co_await sleep(kube::Milliseconds(10));
  }
}

Task<void> Cluster::sleep(kube::Milliseconds time) {
  kube::asio::steady_timer timer(io_, time);
  co_await timer.async_wait(kube::asio::use_awaitable);
}

Task<void> Cluster::make_namespace(std::string name) {
  Json object = Json::object({{"apiVersion", "v1"}, {"kind", "Namespace"}});
  object["metadata"].set("name", name);
  co_await must(client_.create(kube::kNamespaces, std::move(object)));
}

Task<void> Cluster::remove_namespace(std::string name, bool waits) {
  const kube::ObjectKey key{"", name};
  kube::DeleteOptions background;
  background.propagation = "Background";
  co_await client_.remove(kube::kNamespaces, key, background);
  const auto end = Steady::now() + std::chrono::minutes(20);
  if (!waits) co_return;
  while (Steady::now() < end) {
    const auto existing = co_await client_.get(kube::kNamespaces, key);
    if (!existing && existing.error().code == kube::ErrorCode::kNotFound) co_return;
    co_await sleep(kube::Milliseconds(500));
  }
  throw std::runtime_error("namespace " + name + " does not go away");
}

}  // namespace trainer::bench
