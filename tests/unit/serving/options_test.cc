#include "controller/process/serving_options.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kHead = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

Configuration configuration(const std::string& yaml) {
  const auto parsed = parse_configuration(kHead + yaml);
  REQUIRE(parsed);
  return parsed->configuration;
}

}  // namespace

TEST_CASE("the limits of progress reports reach their server") {
  const auto serving = serving_options(
      configuration("statusServer: {port: 1, qps: 2.5, burst: 7}\ntls: {minVersion: \"1.3\"}\n"
                    "featureGates: {TrainJobStatus: true}"),
      std::nullopt);
  CHECK(serving.serves_status);
  CHECK(serving.status_port == 1);
  CHECK(serving.status_limits.qps == 2.5);
  CHECK(serving.status_limits.burst == 7);
  CHECK(serving.min_tls_version == "1.3");
  CHECK_FALSE(serving_options(configuration(""), std::nullopt).status_limits.qps);
}

TEST_CASE("webhooks listen on the URL's port unless the file names one") {
  CHECK(serving_options(configuration(""), std::nullopt).webhook_port == 9443);
  CHECK(serving_options(configuration(""), 443).webhook_port == 443);
  CHECK(serving_options(configuration("webhook: {host: h}"), 443).webhook_port == 443);
  CHECK(serving_options(configuration("webhook: {port: 9443}"), 443).webhook_port == 9443);
  CHECK(serving_options(configuration("webhook: {port: 1}"), std::nullopt).webhook_port == 1);
}
