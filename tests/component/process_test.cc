// The process listens on its addresses, and ends if it cannot listen.
#include "controller/process/process.hh"

#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "controller/process/endpoints.hh"
#include "controller/process/run.hh"
#include "kube/client/certificates.hh"
#include "kube/client/clock.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/free_port.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"
#include "tests/component/captured_errors.hh"
#include "tests/component/sample_kind/widget_kind.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::asio::ip::tcp;

namespace {

// A port that is in use.
struct TakenPort {
  kube::asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(kube::asio::ip::address_v4::loopback(), 0)};
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  }
};

struct Files {
  std::filesystem::path folder;
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "process_test.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { std::filesystem::remove_all(folder); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }
};

std::string kubeconfig_of(const std::string& server) {
  return R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: ")" +
         server + R"("}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
)";
}

struct Environment {
  std::string name;
  Environment(std::string name_, const std::string& value) : name(std::move(name_)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { unsetenv(name.c_str()); }
};

// An API server that has the certificates' Secret and nothing else, on a thread of its own.
struct ScriptedApi {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  std::thread thread;
  ScriptedApi() {
    const auto made = kube::make_certificates({"127.0.0.1"}, kube::SystemClock().now());
    REQUIRE(made);
    api.on("GET", "/api/v1/namespaces/kubeflow-system/secrets/kubeflow-trainer-webhook-cert")
        .answer(200, kube::print_json(
                         kube::Json::object({{"data", kube::certificate_secret_data(*made)}})))
        .always();
    thread = std::thread([this] { io.run(); });
  }
  ScriptedApi(const ScriptedApi&) = delete;
  ScriptedApi& operator=(const ScriptedApi&) = delete;
  ~ScriptedApi() { end(); }
  void end() {
    io.stop();
    if (thread.joinable()) thread.join();
  }
};

// Its task ends by an exception as soon as the process leads.
struct Doomed final : kube::Controller {
  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey) override {
    co_return kube::Requeue{};
  }
  std::vector<kube::BackgroundTask> leader_tasks() override {
    std::vector<kube::BackgroundTask> tasks;
    tasks.push_back({"doomed", fail()});
    return tasks;
  }
  static kube::Task<void> fail() {
    throw std::runtime_error("a bug");
    co_return;
  }
};

Registry doomed_registry(const KindOptions&) {
  Registry registry{sample::widget_registration()};
  registry[0].controller.watches.resize(1);
  registry[0].controller.make = [](const auto&) { return std::make_unique<Doomed>(); };
  return registry;
}

// A controller with webhooks whose API server does not answer.
struct ProcessFixture {
  TakenPort api;
  TakenPort taken;
  Files files;
  ControllerOptions options;

  ProcessFixture() {
    options.kubeconfig = files.write("kubeconfig", kubeconfig_of("http://" + api.address()));
    options.webhook_url = "https://127.0.0.1:0";
    options.health_address = "127.0.0.1:0";
    options.metrics_address = "127.0.0.1:0";
  }

  struct End {
    int code = 0;
    std::string errors;
  };
  // The exit code and the log; after ten seconds it is stopped, and the code is 0.
  End run() const {
    const test::CapturedErrors captured;
    auto ended = std::async(std::launch::async, [this] { return run_controller(options); });
    if (ended.wait_for(std::chrono::seconds(10)) != std::future_status::ready) raise(SIGTERM);
    End end;
    end.code = ended.get();
    end.errors = captured.text();
    return end;
  }
};

kube::Result<kube::HttpResponse> get(kube::asio::io_context& io, const std::string& server,
                                     const std::string& path, const std::string& token = {}) {
  kube::ClientConfig config;
  config.server = server;
  config.token = kube::Secret<std::string>(token);
  config.insecure_skip_tls_verify = true;
  const auto transport = kube::make_transport(io, config, kube::TransportLimits());
  return kube::run_task(io, transport->send(kube::HttpRequest("GET", path)));
}

bool has_ipv6() {
  kube::asio::io_context io;
  boost::system::error_code error;
  tcp::acceptor acceptor(io);
  acceptor.open(tcp::v6(), error);
  if (!error) acceptor.bind(tcp::endpoint(kube::asio::ip::address_v6::loopback(), 0), error);
  return !error;
}

}  // namespace

TEST_CASE_METHOD(ProcessFixture,
                 "a server that cannot listen ends the process, whatever it is for") {
  SECTION("metrics over TLS") {
    options.metrics_address = taken.address();
  }
  SECTION("metrics without") {
    options.metrics_address = taken.address();
    options.no_webhooks = true;
  }
  SECTION("health") {
    options.health_address = taken.address();
  }
  SECTION("webhooks") {
    options.webhook_url = "https://" + taken.address();
  }
  SECTION("a host that there is not") {
    // Longer than a DNS label may be, so that no name server is queried.
    options.metrics_address = std::string(64, 'x') + ":0";
  }
  const End end = run();
  CHECK(end.code == 1);
  CHECK_THAT(end.errors, Catch::Contains("cannot start") && Catch::Contains("cannot listen on"));
}

TEST_CASE_METHOD(ProcessFixture,
                 "the webhooks' host that cannot be listened on ends the process too") {
  options.config_file =
      files.write("config.yaml", R"(apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {host: 192.0.2.1}
)");
  const End end = run();
  CHECK(end.code == 1);
  CHECK_THAT(end.errors, Catch::Contains("webhook server: cannot listen on 192.0.2.1"));
}

TEST_CASE_METHOD(ProcessFixture,
                 "after SIGTERM it is unready at once, and serves for five seconds more") {
  const ScriptedApi api_server;
  const auto webhook_port = kube::free_port();
  const std::string health = "127.0.0.1:" + std::to_string(kube::free_port());
  const Environment in_pod("KUBERNETES_SERVICE_HOST", "127.0.0.1");
  const Environment kubeconfig(
      "KUBECONFIG", files.write("scripted", kubeconfig_of(api_server.api.config().server)));
  options.kubeconfig.clear();
  options.webhook_url.clear();
  options.health_address = health;
  options.config_file =
      files.write("config.yaml",
                  "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"
                  "certManagement: {enable: false}\nwebhook: {host: 127.0.0.1, port: " +
                      std::to_string(webhook_port) + "}\n");
  const test::CapturedErrors captured;
  kube::asio::io_context io;
  const auto ask = [&io](const std::string& url, const std::string& path) {
    const auto got = get(io, url, path);
    return got ? std::to_string(got->status) + " " + got->body : std::string();
  };
  const auto await = [&](const std::string& url, const std::string& path, const std::string& what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ask(url, path).find(what) == std::string::npos)
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  };
  const std::string webhooks = "https://127.0.0.1:" + std::to_string(webhook_port);
  auto ended = std::async(std::launch::async, [this] { return run_controller(options); });
  CHECK(await(webhooks, "/", "404 there is no webhook"));
  const auto signalled_at = std::chrono::steady_clock::now();
  raise(SIGTERM);
  CHECK(await("http://" + health, "/readyz", "503 the process is ending"));
  CHECK(std::chrono::steady_clock::now() - signalled_at < std::chrono::seconds(4));
  CHECK_THAT(ask(webhooks, "/"), Catch::StartsWith("404"));
  CHECK(ended.get() == 0);
  CHECK(std::chrono::steady_clock::now() - signalled_at >= std::chrono::seconds(5));
}

TEST_CASE_METHOD(ProcessFixture,
                 "tokens for metrics are reviewed apart from the control loops' limits") {
  ScriptedApi api_server;
  const std::string reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
  api_server.api.on("POST", reviews).answer(201, R"({"status":{"authenticated":false}})").always();
  options.kubeconfig = files.write("scripted", kubeconfig_of(api_server.api.config().server));
  options.metrics_address = "127.0.0.1:" + std::to_string(kube::free_port());
  options.config_file =
      files.write("config.yaml",
                  "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"
                  "metrics: {auth: {enabled: true}}\nclientConnection: {qps: 0.001, burst: 1}\n");
  const test::CapturedErrors captured;
  auto ended = std::async(std::launch::async, [this] { return run_controller(options); });
  kube::asio::io_context io;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto ask = [&] { return get(io, "https://" + *options.metrics_address, "/metrics", "t"); };
  auto got = ask();
  while (!got && std::chrono::steady_clock::now() < end) got = ask();
  REQUIRE(got);
  CHECK(got->status == 401);
  raise(SIGTERM);
  CHECK(ended.get() == 0);
}

TEST_CASE_METHOD(ProcessFixture,
                 "a process that loses a task gives its Lease back before it ends") {
  ScriptedApi api_server;
  kube::ScriptedServer& scripted = api_server.api;
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kubeflow-system/leases";
  const auto echo = [](const kube::ReceivedRequest& request) {
    return kube::ScriptedReply(201, request.body);
  };
  scripted.on("POST", leases).reply(echo);
  scripted.on("PATCH", leases + "/trainer.kubeflow.org").always().reply(echo);
  const std::string widgets = "/apis/example.com/v1/widgets";
  scripted.on("GET", widgets).answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[]})");
  scripted.on("GET", widgets).stream({}).stay_open();
  options.no_webhooks = true;
  options.metrics_address = "0";
  const kube::ClientConfig config = scripted.config();
  const kube::MakeTransport make_transport = [&config](kube::asio::io_context& io,
                                                       const kube::TransportLimits& limits) {
    return kube::make_transport(io, config, limits);
  };
  kube::Log log(kube::LogLevel::kInfo, kube::Log::Format::kText);
  const test::CapturedErrors captured;
  Process process(options, Configuration(), make_transport, doomed_registry, log);
  CHECK(process.run(kube::run_coalescing_event_loop) == 1);
  api_server.end();
  CHECK_THAT(captured.text(), Catch::Contains("a task has ended"));
  std::string last_write;  // a watch that was about to begin may come after it
  for (const kube::ReceivedRequest& request : scripted.log())
    if (request.method != "GET") last_write = request.body;
  CHECK_THAT(last_write, Catch::Contains(R"("holderIdentity":"")"));
}

TEST_CASE("probes are reached by both families where no host is named") {
  const auto address = listen_address(":0");
  REQUIRE(address);
  REQUIRE(*address);
  kube::asio::io_context io;
  std::string missing = "something";
  std::string dead;
  const auto served = serve_probes(
      io, **address, kube::ServerOptions(), [&] { return dead; }, [&] { return missing; });
  REQUIRE(served);
  std::vector<std::string> hosts = {"127.0.0.1"};
  if (has_ipv6()) {
    hosts.emplace_back("::1");
  } else {
    WARN("this machine has no IPv6: only 127.0.0.1 is tried");
  }
  for (const std::string& host : hosts) {
    CAPTURE(host);
    std::string url = https_url({host, (*served)->port()});
    url.replace(0, 5, "http");
    missing = "something";
    CHECK(get(io, url, "/healthz")->status == 200);
    CHECK(get(io, url, "/readyz")->status == 503);
    missing.clear();
    CHECK(get(io, url, "/readyz")->status == 200);
    CHECK(get(io, url, "/")->status == 404);
    dead = "the serving thread has not run for 20 s";
    CHECK(get(io, url, "/healthz")->status == 503);
    CHECK_THAT(get(io, url, "/healthz")->body, kube::test::contains(dead));
    dead.clear();
  }
}

TEST_CASE("an exception of a small server is logged, and a peer's surplus connections counted") {
  kube::asio::io_context io;
  Metrics metrics;
  const kube::Log log(kube::LogLevel::kInfo, kube::Log::Format::kText);
  const auto served =
      serve_metrics(io, {"127.0.0.1", 0}, endpoint_options("metrics", metrics, log), metrics, {});
  REQUIRE(served);
  const std::string url = "http://127.0.0.1:" + std::to_string((*served)->port());
  metrics.on_collect([] { throw std::runtime_error("a bug"); });
  const test::CapturedErrors captured;
  CHECK(get(io, url, "/metrics")->status == 500);
  CHECK_THAT(captured.text(), Catch::Contains("handler") && Catch::Contains("a bug"));
  metrics.on_collect({});
  int closed = 0;
  for (int i = 0; i < 200 && closed == 0; ++i) closed += get(io, url, "/") ? 0 : 1;
  CHECK(closed == 1);
  CHECK_THAT(metrics.render(), Catch::Contains("evicted_total{server=\"metrics\"} "));
}

TEST_CASE("addresses to listen on") {
  CHECK_FALSE(*listen_address("0"));
  CHECK_FALSE(*listen_address(""));
  CHECK((*listen_address("localhost:8081"))->host == "localhost");
  CHECK((*listen_address("[::1]:8081"))->host == "::1");
  CHECK_FALSE(listen_address("8081"));
}

TEST_CASE("URLs have IPv6 addresses in brackets") {
  CHECK(https_url({"fd00::1", 10443}) == "https://[fd00::1]:10443");
  CHECK(https_url({"10.0.0.1", 10443}) == "https://10.0.0.1:10443");
  CHECK(https_url({"manager.kubeflow-system.svc", 443}) ==
        "https://manager.kubeflow-system.svc:443");
}

TEST_CASE("the limit of open descriptors is raised to the hard limit") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(before.rlim_max, 256);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK(raise_descriptor_limit());
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
  CHECK(after.rlim_max == before.rlim_max);
  CHECK(raise_descriptor_limit());
  setrlimit(RLIMIT_NOFILE, &before);
}
