// The process: the addresses it listens on, and that it ends where it cannot listen.
#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "controller/process/descriptors.hh"
#include "controller/process/endpoints.hh"
#include "controller/process/run.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/captured_errors.hh"
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

// A controller with webhooks whose API server does not answer.
struct Fixture {
  TakenPort api;
  TakenPort taken;
  Files files;
  ControllerOptions options;

  Fixture() {
    options.kubeconfig = files.write("kubeconfig", R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://)" + api.address() +
                                                       R"("}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
)");
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
                                     const std::string& path) {
  kube::ClientConfig config;
  config.server = server;
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

TEST_CASE_METHOD(Fixture, "a server that cannot listen ends the process, whatever it is for") {
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

TEST_CASE_METHOD(Fixture, "the webhooks' host that cannot be listened on ends the process too") {
  options.config_file =
      files.write("config.yaml", R"(apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {host: 192.0.2.1}
)");
  const End end = run();
  CHECK(end.code == 1);
  CHECK_THAT(end.errors, Catch::Contains("webhook server: cannot listen on 192.0.2.1"));
}

TEST_CASE("probes are reached by both families where no host is named") {
  const auto address = listen_address(":0");
  REQUIRE(address);
  REQUIRE(*address);
  kube::asio::io_context io;
  std::string missing = "something";
  std::string dead;
  const auto served = serve_probes(
      io, **address, [&] { return dead; }, [&] { return missing; });
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
    CHECK_THAT(get(io, url, "/healthz")->body, Catch::Contains(dead));
    dead.clear();
  }
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
