// The configuration of servers that kinds register.
#include "controller/kinds/registry.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kHead = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

std::vector<ServerRegistration> servers(const std::string& yaml) {
  const auto parsed = parse_configuration(kHead + yaml);
  REQUIRE(parsed);
  KindOptions options;
  options.configuration = parsed->configuration;
  std::vector<ServerRegistration> all;
  for (const KindRegistration& kind : production_registry(options))
    all.insert(all.end(), kind.servers.begin(), kind.servers.end());
  return all;
}

}  // namespace

TEST_CASE("progress reports have a server only where it is asked for, on the configured port") {
  CHECK(servers("").empty());
  CHECK(servers("statusServer: {port: 1}").empty());
  CHECK(servers("statusServer: {enabled: true}").size() == 1);
  const auto all = servers("statusServer: {port: 1}\nfeatureGates: {TrainJobStatus: true}");
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "status server");
  CHECK(all[0].port == 1);
  CHECK(all[0].max_body_bytes == 1U << 20);
}
