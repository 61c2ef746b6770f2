// The API server of local mode on a thread of its own, with a few kinds, and clients of it.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "kube/client/api_client.hh"
#include "kube/client/certificates.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/run_task.hh"
#include "local/server/serve.hh"
#include "local/server/transport.hh"

namespace trainer::test {

struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "local_test.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

// Kinds without schemas.
inline kube::server::ServedKinds few_kinds() {
  kube::server::ServedKinds kinds;
  for (const kube::Resource& resource :
       {kube::kNamespaces, kube::kConfigMaps, kube::kEvents, kube::kPods, kube::kJobs}) {
    kube::server::ServedKind kind;
    kind.resource = resource;
    kind.has_status = true;
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

inline kube::server::Api::Environment environment_of(kube::Clock& clock, kube::Random& random) {
  kube::server::Api::Environment made;
  made.now = [&clock] { return clock.now(); };
  made.new_uid = [&random] { return std::to_string(random.next()); };
  made.new_name_suffix = [] { return std::string("abcde"); };
  return made;
}

inline kube::Json config_map(const std::string& name, const std::string& value = "1") {
  kube::Json object = kube::Json::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
  object.set("metadata", kube::Json::object({{"name", name}, {"namespace", "default"}}));
  object.set("data", kube::Json::object({{"value", value}}));
  return object;
}

// With a container "c".
inline kube::Json pod(const std::string& name) {
  using kube::Json;
  Json object = config_map(name);
  object.set("kind", "Pod");
  object.set("spec", Json::object({{"containers", Json::array({Json::object({{"name", "c"}})})}}));
  object["metadata"].set("uid", "1");
  return object;
}

// This runs on the server's thread; a test may use it before start() and after end().
struct LocalApi {
  kube::asio::io_context server_io{1};
  kube::asio::executor_work_guard<kube::asio::io_context::executor_type> work{
      server_io.get_executor()};
  kube::SystemClock clock;
  kube::SystemRandom server_random;
  kube::server::ServedKinds kinds = few_kinds();
  kube::server::ObjectStore store;
  kube::server::Api served{kinds, store, environment_of(clock, server_random)};
  Access access{kube::Secret<std::string>("secret"),
                kube::make_certificates({"127.0.0.1"}, clock.now()).value()};
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};
  std::unique_ptr<Audit> audit;
  std::optional<ApiServer> server;
  ApiServer::Hooks hooks;
  unsigned short port = 0;
  std::thread thread;

  // The callers' thread.
  kube::asio::io_context io;
  kube::SystemRandom random;
  std::unique_ptr<kube::Transport> transport;
  std::unique_ptr<kube::ApiClient> client;

  void start() {
    server.emplace(server_io, clock, served, access, log, audit.get());
    server->set_hooks(hooks);
    const auto listening = server->listen(0);
    REQUIRE(listening);
    port = *listening;
    thread = std::thread([this] { server_io.run(); });
    use(make_local_transport(io, *server, Caller::kController));
  }
  void use(std::unique_ptr<kube::Transport> other) {
    client.reset();
    transport = std::move(other);
    client = std::make_unique<kube::ApiClient>(*transport, clock, random);
  }
  // From now on the client speaks HTTP.
  void use_http(const std::string& token) {
    kube::ClientConfig config;
    config.server = "https://127.0.0.1:" + std::to_string(port);
    config.ca_pem = access.certificates.ca_certificate;
    config.token = kube::Secret<std::string>(token);
    use(kube::make_transport(io, config, kube::TransportLimits()));
  }
  // Runs on the server's thread, and waits for it.
  void on_server(std::function<void()> what) {
    std::promise<void> done;
    kube::asio::post(server_io, [&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }
  static kube::Task<void> drain(ApiServer& server) { co_await server.drained(); }
  void end() {
    if (!thread.joinable()) return;
    client.reset();
    transport.reset();
    kube::asio::post(server_io, [this] {
      server->stop();
      kube::asio::co_spawn(server_io, drain(*server),
                           [this](std::exception_ptr) { server_io.stop(); });
    });
    thread.join();
  }

  LocalApi() {
    kube::Json ns = kube::Json::object({{"apiVersion", "v1"}, {"kind", "Namespace"}});
    ns.set("metadata", kube::Json::object({{"name", "default"}, {"uid", "namespace"}}));
    store.put(kube::kNamespaces, std::move(ns));
  }
  LocalApi(const LocalApi&) = delete;
  LocalApi& operator=(const LocalApi&) = delete;
  ~LocalApi() { end(); }

  kube::Result<kube::HttpResponse> send(kube::HttpRequest request) {
    return kube::run_task(io, transport->send(std::move(request)));
  }
  kube::Result<std::string> create(kube::Json object) {
    return kube::run_task(io, client->create(kube::kConfigMaps, std::move(object)));
  }
};

// Returns the text of a stream, once `condition` holds for it.
inline kube::Task<std::string> read_until(kube::HttpStream& stream,
                                          std::function<bool(const std::string&)> condition) {
  std::string text;
  while (!condition(text)) {
    const auto piece = co_await stream.read_some(kube::Milliseconds(5'000));
    if (!piece || piece->empty()) break;
    text += *piece;
  }
  co_return text;
}

inline std::function<bool(const std::string&)> has_lines(std::ptrdiff_t count) {
  return [count](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n') >= count;
  };
}

}  // namespace trainer::test
