// Tokens in the volumes of pods: who asks for them, how they are written, when they are renewed.
#include <sys/stat.h>

#include <string>

#include "local/node/env.hh"
#include "local/node/files.hh"
#include "local/node/make_config.hh"
#include "local/node/volumes.hh"
#include "local/tests/node_fixture.hh"

using namespace trainer;
using namespace trainer::test;

namespace {

constexpr const char* kMountPath = "/var/run/secrets/kubeflow/trainer";

// A pod with a token, as the controller makes it.
Json make_reporter(const std::string& name, const std::string& script) {
  Json pod = make_pod(name, {"sh", "-c", script});
  Json token =
      Json::object({{"audience", "reports"}, {"expirationSeconds", 3'600}, {"path", "token"}});
  Json sources = Json::array({Json::object({{"serviceAccountToken", std::move(token)}})});
  Json projected = Json::object({{"sources", std::move(sources)}});
  pod["spec"]["volumes"].push_back(
      Json::object({{"name", "t"}, {"projected", std::move(projected)}}));
  Json& container = pod["spec"]["containers"].as_array()[0];
  container["volumeMounts"].push_back(
      Json::object({{"name", "t"}, {"mountPath", kMountPath}, {"readOnly", true}}));
  container["env"].push_back(
      Json::object({{"name", "TOKEN"}, {"value", std::string(kMountPath) + "/token"}}));
  return pod;
}

std::filesystem::path token_file(const NodeTest& test, const std::string& pod) {
  return test.directory(pod) / node::kVolumes / "t" / "token";
}

}  // namespace

TEST_CASE("a pod reads its token in each tier, and other users do not", "[node]") {
  const int tier = GENERATE(1, 2, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  test.api->put(make_reporter("p", "cat $TOKEN; echo; echo " + std::string(kMountPath) + "; true"));
  test.until_phase("p", "Succeeded");
  CHECK_THAT(test.log("p"), kube::test::starts_with("token-1 of p for reports\n"));
  struct stat status {};
  REQUIRE(stat(token_file(test, "p").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(status.st_uid == geteuid());
}

TEST_CASE("a token is renewed in time, and by a daemon that adopts the pod", "[node]") {
  NodeTest test(3);
  test.api->put(make_reporter("p", "sleep 100"));
  test.until_phase("p", "Running");
  const auto token = [&] { return node::read_file(token_file(test, "p")).value_or(""); };
  CHECK(token() == "token-1 of p for reports");
  test.clock.ahead = std::chrono::seconds(2'860);
  kube::settle(*test.io);
  CHECK(test.api->tokens == 1);
  test.clock.ahead = std::chrono::seconds(2'900);
  test.until("it is renewed", [&] { return token() == "token-2 of p for reports"; });
  test.stop();
  test.start();
  test.until("it is renewed again", [&] { return token() == "token-1 of p for reports"; });
  // A pod that has ended needs none.
  test.api->remove("p", 0);
  test.until("it is gone", [&] { return test.api->phase("p").empty(); });
  const int made = test.api->tokens;
  test.clock.ahead = std::chrono::seconds(90'000);
  test.api->put(make_pod("q", {"true"}));
  test.until_phase("q", "Succeeded");
  CHECK(test.api->tokens == made);
}

TEST_CASE("a program behind sh that is missing is named as without sh", "[node]") {
  NodeTest test(3);
  const std::string becomes = "X=1; export X; exec \"$0\" \"$@\"";
  test.api->put(make_pod("p", {"sh", "-c", becomes, "no-such-program", "x"}));
  test.api->put(make_pod("q", {"sh", "-c", becomes, "/no/such/program"}));
  test.api->put(make_pod("r", {"sh", "-c", becomes, "sh", "-c", "echo $X $0 $1", "a", "b c"}));
  for (const char* name : {"p", "q"}) {
    test.until_phase(name, "Failed");
    CHECK(test.api->ended(name).get_string("reason") == "StartError");
  }
  CHECK_THAT(std::string(test.api->ended("p").get_string("message")),
             kube::test::starts_with("exec: \"no-such-program\": executable file not found"));
  CHECK_THAT(std::string(test.api->ended("q").get_string("message")),
             kube::test::starts_with("exec: \"/no/such/program\": No such file"));
  test.until_phase("r", "Succeeded");
  CHECK(test.log("r") == "1 a b c\n");
}

TEST_CASE("a token without an audience is refused", "[node]") {
  Json pod = make_reporter("p", "true");
  Json& volume = pod["spec"]["volumes"].as_array()[0];
  node::Sources sources;
  CHECK(node::files_of(pod, volume, sources, {}).error().code == kube::ErrorCode::kNotFound);
  CHECK(node::sources_of(pod).tokens == std::set<node::TokenSource>{{"reports", 3'600}});
  volume["projected"]["sources"].as_array()[0]["serviceAccountToken"].erase("audience");
  CHECK(node::sources_of(pod).tokens.empty());
  const auto refused = node::files_of(pod, volume, sources, {});
  REQUIRE(!refused);
  CHECK(refused.error().code == kube::ErrorCode::kUnsupported);
  CHECK_THAT(refused.error().message, kube::test::contains("state the audience"));
}

TEST_CASE("without mounts, variables and commands name where the controller's files are",
          "[node]") {
  Json pod = make_reporter("p", "true");
  Json& container = pod["spec"]["containers"].as_array()[0];
  container.set("command", Json::array({"PYTHONPATH=/var/run/secrets/kubeflow/trainer${X:+:$X}",
                                        "/var/run/secrets/kubeflow/trainer-2"}));
  node::PodContext place;
  place.volumes = {"/state/pods/u", "/state/claims"};
  place.name = node::PodName::of(pod);
  node::NodeFacts facts;
  facts.tier = node::Tier::kPorts;
  node::Sources sources;
  const auto config = node::make_config(pod, sources, place, facts);
  REQUIRE(config);
  const node::ContainerConfig& made = config->containers.front();
  CHECK(made.mounts.empty());
  CHECK(made.argv == std::vector<std::string>{"PYTHONPATH=/state/pods/u/volumes/t${X:+:$X}",
                                              "/var/run/secrets/kubeflow/trainer-2"});
  CHECK(std::count(made.env.begin(), made.env.end(), "TOKEN=/state/pods/u/volumes/t/token") == 1);
  container["volumeMounts"].as_array()[0].set("mountPath", "/var/run/secrets/other");
  CHECK_FALSE(node::make_config(pod, sources, place, facts));
}
