// The server of local mode as a whole: what a restart keeps, and what it refuses to start with.
#include "controller/local/local_server.hh"

#include <boost/asio/ip/tcp.hpp>
#include <fstream>

#include "kube/client/task_group.hh"
#include "kube/tests/fake_clock.hh"
#include "tests/component/local_api.hh"

using namespace trainer;
using kube::Json;

namespace {

// Without a node.
struct Started {
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};
  kube::asio::io_context io;
  kube::SystemClock clock;
  kube::SystemRandom random;
  std::unique_ptr<LocalServer> server;
  std::unique_ptr<kube::Transport> transport;
  std::unique_ptr<kube::ApiClient> client;

  kube::Result<void> start(const std::filesystem::path& folder,
                           LocalServerOptions options = LocalServerOptions()) {
    auto state = open_local_state(folder, "", clock.now());
    if (!state) return tl::unexpected(state.error());
    server = std::make_unique<LocalServer>(std::move(*state), test::few_kinds(), Registry(),
                                           std::move(options), log);
    if (auto started = server->start(); !started) return started;
    transport = server->transports()(io, kube::TransportLimits());
    client = std::make_unique<kube::ApiClient>(*transport, clock, random);
    return {};
  }
  void end() {
    client.reset();
    transport.reset();
    server.reset();
  }
  kube::Result<std::string> create(Json object) {
    return kube::run_task(io, client->create(kube::kConfigMaps, std::move(object)));
  }
  kube::Result<Json> get(const std::string& name) {
    return kube::run_task(io, client->get(kube::kConfigMaps, {"default", name}));
  }
};

Json event_at(int number, kube::Time time) {
  Json event = test::config_map("event-" + std::to_string(number));
  event.set("kind", "Event");
  event.set("lastTimestamp", time.to_string());
  event["metadata"].set("uid", "uid-" + std::to_string(number));
  return event;
}

}  // namespace

TEST_CASE_METHOD(Started, "a restart keeps objects, port, token and namespaces") {
  const test::TemporaryFolder folder;
  REQUIRE(start(folder.path));
  REQUIRE(create(test::config_map("a")));
  const std::string address = server->address();
  const auto before = get("a");
  end();
  REQUIRE(start(folder.path));
  CHECK(server->address() == address);
  CHECK(*get("a") == *before);
  CHECK(kube::run_task(io, client->get(kube::kNamespaces, {"", "kubeflow-system"})));
  // As kubectl finds it.
  const auto config = kube::load_config((folder.path / "kubeconfig").string());
  REQUIRE(config);
  CHECK(config->server == address);
  const auto over_http = kube::make_transport(io, *config, kube::TransportLimits());
  CHECK(kube::run_task(io, over_http->send(
                               kube::HttpRequest("GET", "/api/v1/namespaces/default/configmaps/a")))
            ->status == 200);
}

TEST_CASE_METHOD(Started, "namespaces: none is made by naming it") {
  const test::TemporaryFolder folder;
  REQUIRE(start(folder.path));
  Json object = test::config_map("a");
  object["metadata"].set("namespace", "none");
  const auto refused = create(std::move(object));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == kube::ErrorCode::kNotFound);
  CHECK(refused.error().message == "namespaces \"none\" not found");
  const auto kept =
      kube::run_task(io, client->remove(kube::kNamespaces, {"", "default"}, kube::DeleteOptions()));
  REQUIRE_FALSE(kept);
  CHECK(kept.error().code == kube::ErrorCode::kForbidden);
}

TEST_CASE_METHOD(Started, "a port that is taken, and a second server, are one sentence each") {
  const test::TemporaryFolder folder;
  SECTION("the port") {
    using kube::asio::ip::tcp;
    const tcp::acceptor taken(io, tcp::endpoint(kube::asio::ip::address_v4::loopback(), 0));
    std::ofstream(folder.path / "port") << taken.local_endpoint().port();
    const auto refused = start(folder.path);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message,
               Catch::Contains(std::to_string(taken.local_endpoint().port())) &&
                   Catch::Contains("taken by another program"));
  }
  SECTION("the directory") {
    REQUIRE(start(folder.path));
    CHECK_THAT(open_local_state(folder.path, "", clock.now()).error().message,
               Catch::Contains("another daemon uses it"));
  }
}

TEST_CASE_METHOD(Started, "it leaves when there is nothing to do, but not before") {
  const test::TemporaryFolder folder;
  std::atomic<bool> is_idle = false;
  LocalServerOptions options;
  options.idle = std::chrono::seconds(2);
  options.on_idle = [&is_idle] { is_idle = true; };
  const bool has_pod = GENERATE(false, true);
  REQUIRE(start(folder.path, std::move(options)));
  if (has_pod) {
    Json pod = test::config_map("p");
    pod.set("kind", "Pod");
    REQUIRE(kube::run_task(io, client->create(kube::kPods, std::move(pod))));
  }
  const auto waited = kube::run_until(
      io, [&] { return is_idle.load(); }, std::chrono::seconds(has_pod ? 4 : 10));
  CHECK(waited == !has_pod);
  end();
}

TEST_CASE("Events live an hour, and ten thousand at most") {
  kube::asio::io_context io;
  kube::FakeClock clock;
  kube::FakeRandom random;
  const auto kinds = test::few_kinds();
  kube::server::ObjectStore store;
  kube::server::Api api(kinds, store, test::environment_of(clock, random));
  const kube::Log log(kube::LogLevel::kError, kube::Log::Format::kText);
  Housekeeping housekeeping(io.get_executor(), clock, api, log);
  const int many = static_cast<int>(Housekeeping::kMaxEvents) + 5;
  for (int i = 0; i < many; ++i)
    store.put(kube::kEvents, event_at(i, clock.now() + std::chrono::seconds(i / 100)));
  kube::TaskGroup tasks(io.get_executor(), nullptr);
  tasks.spawn("housekeeping", housekeeping.run());
  const auto count = [&store] { return store.all(kube::kEvents).size(); };
  CHECK(kube::run_until(io, [&] { return count() <= Housekeeping::kMaxEvents; }));
  CHECK_FALSE(store.find(kube::kEvents, {"default", "event-0"}));
  CHECK(store.find(kube::kEvents, {"default", "event-" + std::to_string(many - 1)}));
  clock.advance(std::chrono::hours(1) + std::chrono::seconds(50));
  CHECK(kube::run_until(io, [&] { return count() < 6'000; }));
  CHECK(store.find(kube::kEvents, {"default", "event-" + std::to_string(many - 1)}));
  clock.advance(std::chrono::minutes(2));
  CHECK(kube::run_until(io, [&] { return count() == 0; }));
  tasks.cancel();
  kube::run_task(io, tasks.join());
}
