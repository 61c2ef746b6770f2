// The server of local mode as a whole: what a restart keeps, and what it refuses to start with.
#include "local/server/local_server.hh"

#include <boost/asio/ip/tcp.hpp>
#include <fstream>

#include "kube/client/task_group.hh"
#include "kube/tests/fake_clock.hh"
#include "local/tests/local_server_fixture.hh"

using namespace trainer;
using kube::Json;

namespace {

struct Started : test::LocalServerFixture {
  kube::Result<void> start(LocalServerOptions options = LocalServerOptions()) {
    return LocalServerFixture::start(test::few_kinds(), std::move(options));
  }
  kube::Result<std::string> create(Json object) {
    return LocalServerFixture::create(kube::kConfigMaps, std::move(object));
  }
  kube::Result<Json> get(const std::string& name) {
    return kube::run_task(io, client->get(kube::kConfigMaps, {"default", name}));
  }
};

Json definition_of(const kube::Resource& resource) {
  Json names = Json::object({{"plural", resource.plural}, {"kind", resource.kind}});
  Json version = Json::object({{"name", resource.version}, {"served", true}, {"storage", true}});
  Json spec = Json::object({{"group", resource.group}, {"names", std::move(names)}});
  spec.set("scope", "Namespaced").set("versions", Json::array({std::move(version)}));
  Json made = Json::object({{"spec", std::move(spec)}});
  const std::string name = resource.plural + "." + resource.group;
  made.set("metadata", Json::object({{"name", name}, {"uid", "of-" + name}}));
  return made;
}

Json event_at(int number, kube::Time time) {
  Json event = test::config_map("event-" + std::to_string(number));
  event.set("kind", "Event");
  event.set("lastTimestamp", time.to_string());
  event["metadata"].set("uid", "uid-" + std::to_string(number));
  return event;
}

}  // namespace

TEST_CASE_METHOD(Started, "a restart keeps objects, port, token and namespaces") {
  REQUIRE(start());
  REQUIRE(create(test::config_map("a")));
  const std::string address = server->address();
  const auto before = get("a");
  end();
  REQUIRE(start());
  CHECK(server->address() == address);
  CHECK(*get("a") == *before);
  CHECK(kube::run_task(io, client->get(kube::kNamespaces, {"", "kubeflow-system"})));
  // The configuration is found by kubectl's rules.
  const auto config = kube::load_config((folder.path / "kubeconfig").string());
  REQUIRE(config);
  CHECK(config->server == address);
  const auto over_http = kube::make_transport(io, *config, kube::TransportLimits());
  CHECK(kube::run_task(io, over_http->send(
                               kube::HttpRequest("GET", "/api/v1/namespaces/default/configmaps/a")))
            ->status == 200);
}

TEST_CASE_METHOD(Started, "namespaces: none is made by naming it") {
  REQUIRE(start());
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
  SECTION("the port") {
    using kube::asio::ip::tcp;
    const tcp::acceptor taken(io, tcp::endpoint(kube::asio::ip::address_v4::loopback(), 0));
    std::ofstream(folder.path / "port") << taken.local_endpoint().port();
    const auto port = std::to_string(taken.local_endpoint().port());
    REQUIRE(start());
    CHECK_FALSE(server->address().ends_with(":" + port));
    REQUIRE(server->changes().size() == 1);
    CHECK_THAT(server->changes().front(),
               Catch::Contains("port " + port + " is taken by another program"));
  }
  SECTION("the directory") {
    REQUIRE(start());
    CHECK_THAT(open_local_state(folder.path, "", clock.now()).error().message,
               Catch::Contains("another daemon uses it"));
  }
}

TEST_CASE_METHOD(Started, "it leaves when there is nothing to do, but not before") {
  std::atomic<bool> is_idle = false;
  LocalServerOptions options;
  options.idle = std::chrono::seconds(2);
  options.on_idle = [&is_idle] { is_idle = true; };
  const bool has_pod = GENERATE(false, true);
  const bool is_to_stay = !has_pod && GENERATE(false, true);  // `up` asks for it, after `run`
  std::ofstream(folder.path / kStaysFile) << "of an earlier daemon";
  REQUIRE(start(std::move(options)));
  if (is_to_stay) std::ofstream(folder.path / kStaysFile) << "";
  if (has_pod) {
    Json pod = test::config_map("p");
    pod.set("kind", "Pod");
    REQUIRE(kube::run_task(io, client->create(kube::kPods, std::move(pod))));
  }
  const auto waited = kube::run_until(
      io, [&] { return is_idle.load(); }, std::chrono::seconds(has_pod || is_to_stay ? 4 : 10));
  CHECK(waited == (!has_pod && !is_to_stay));
  end();
}

TEST_CASE_METHOD(Started,
                 "it leaves when its directory is removed, since no client finds it then") {
  std::atomic<bool> has_left = false;
  LocalServerOptions options;
  options.idle = std::chrono::seconds(10);  // checked each second
  options.on_idle = [&has_left] { has_left = true; };
  REQUIRE(start(std::move(options)));
  CHECK(server->state().is_in_place());
  std::filesystem::rename(folder.path / "lock", folder.path / "gone");
  CHECK_FALSE(server->state().is_in_place());
  CHECK(kube::run_until(
      io, [&] { return has_left.load(); }, std::chrono::seconds(8)));
  end();
}

TEST_CASE("Events live an hour, and ten thousand at most") {
  kube::asio::io_context io;
  kube::FakeClock clock;
  kube::FakeRandom random;
  auto kinds = test::few_kinds();
  kube::server::ObjectStore store;
  kube::server::Api api(kinds, store, test::environment_of(clock, random));
  const kube::Log log(kube::LogLevel::kError, kube::Log::Format::kText);
  CustomKinds custom_kinds(kinds, store, log);
  Housekeeping housekeeping(io.get_executor(), clock, api, custom_kinds, log);
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

TEST_CASE("objects go with their CustomResourceDefinition") {
  kube::asio::io_context io;
  kube::FakeClock clock;
  kube::FakeRandom random;
  auto kinds = test::few_kinds();
  kinds.emplace_back().resource = kube::kCustomResourceDefinitions;
  kube::server::ObjectStore store;
  kube::server::Api api(kinds, store, test::environment_of(clock, random));
  const kube::Log log(kube::LogLevel::kError, kube::Log::Format::kText);
  CustomKinds custom_kinds(kinds, store, log);
  Housekeeping housekeeping(io.get_executor(), clock, api, custom_kinds, log);
  kube::TaskGroup tasks(io.get_executor(), nullptr);
  tasks.spawn("housekeeping", housekeeping.run());
  const kube::Resource widgets{"x.io", "v1", "widgets", "Widget", true};
  const auto put = [&store](const kube::Resource& resource, int number) {
    Json object = test::config_map("o" + std::to_string(number));
    object["metadata"].set("uid", resource.plural + std::to_string(number));
    store.put(resource, std::move(object));
  };
  for (const kube::Resource& resource : {widgets, kube::kJobs}) {
    store.put(kube::kCustomResourceDefinitions, definition_of(resource));
    for (int i = 0; i < 250; ++i) put(resource, i);
  }
  kube::settle(io);
  CHECK(store.all(widgets).size() == 250);
  for (const char* name : {"widgets.x.io", "jobs.batch"})
    REQUIRE(store.erase(kube::kCustomResourceDefinitions, {"", name}));
  CHECK(kube::run_until(io, [&] { return store.all(widgets).empty(); }));
  // The kind is served until the next start.
  put(widgets, 1);
  CHECK(kube::run_until(io, [&] { return store.all(widgets).empty(); }));
  CHECK(store.all(kube::kJobs).size() == 250);  // the program's own
  store.put(kube::kCustomResourceDefinitions, definition_of(widgets));
  put(widgets, 2);
  kube::settle(io);
  CHECK(store.all(widgets).size() == 1);
  tasks.cancel();
  kube::run_task(io, tasks.join());
}
