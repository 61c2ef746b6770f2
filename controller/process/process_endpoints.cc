// These are the process's probes and metrics.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controller/process/endpoints.hh"
#include "controller/process/process.hh"

namespace trainer {

using kube::Result;

kube::ServerTlsOptions Process::tls_options() const {
  kube::ServerTlsOptions tls;
  tls.min_version = configuration_.tls.minVersion;
  tls.ciphers = fmt::format("{}", fmt::join(configuration_.tls.cipherSuites, ":"));
  return tls;
}

Result<void> Process::start_endpoints() {
  const auto health = listen_address(
      options_.health_address.value_or(configuration_.health.healthProbeBindAddress));
  if (!health) return tl::unexpected(health.error().at("health.healthProbeBindAddress"));
  if (*health) {
    auto served = serve_probes(
        io_, **health, endpoint_options("probes", metrics_, log_), [this] { return not_live(); },
        [this] { return not_ready(); });
    if (!served) return tl::unexpected(served.error().at("health"));
    probes_ = std::move(*served);
  }
  const auto address =
      listen_address(options_.metrics_address.value_or(configuration_.metrics.bindAddress));
  if (!address) return tl::unexpected(address.error().at("metrics.bindAddress"));
  metrics_address_ = *address;
  // Without webhooks there is no certificate, and metrics contain no secrets. With webhooks, the
  // metrics server starts when there is a certificate.
  is_metrics_tls_ = configuration_.metrics.secureServing && webhooks_ != Webhooks::kNone;
  if (is_metrics_tls_) return {};
  if (metrics_address_ && configuration_.metrics.auth.enabled) {
    return kube::fail(
        kube::ErrorCode::kInvalid,
        "metrics.auth.enabled: without webhooks there is no certificate, and tokens would be sent "
        "without encryption: leave it off, or serve no metrics (--metrics-address 0)");
  }
  return start_metrics(nullptr);
}

Result<void> Process::start_metrics(const kube::CertificateBundle* bundle) {
  if (!metrics_address_) return {};
  kube::ServerOptions server = endpoint_options("metrics", metrics_, log_);
  server.tls = tls_options();
  if (bundle) {
    server.is_tls = true;
    server.certificate_pem = bundle->certificate;
    server.private_key_pem = bundle->key;
  }
  auto access = configuration_.metrics.auth.enabled ? std::make_shared<MetricsAccess>(reviews_)
                                                    : std::shared_ptr<MetricsAccess>();
  DebugOptions debug{&log_, [this] { return state(); }};
  auto served = serve_metrics(io_, *metrics_address_, std::move(server), metrics_,
                              std::move(access), std::move(debug));
  if (!served) return tl::unexpected(served.error().at("metrics"));
  metrics_server_ = std::move(*served);
  return {};
}

void Process::show_certificates(const kube::CertificateBundle& bundle) {
  if (const auto expiry = kube::expiry_of(bundle.certificate))
    metrics_.set_certificate_expiry("server", *expiry);
  if (const auto expiry = kube::expiry_of(bundle.ca_certificate))
    metrics_.set_certificate_expiry("ca", *expiry);
}

kube::Json Process::state() const {
  using kube::Json;
  Json election = Json::object({{"lease", election_.key().to_string()},
                                {"holder", election_.holder()},
                                {"identity", election_.identity()},
                                {"mayWrite", election_.may_write()}});
  return Json::object({{"version", TRAINER_VERSION},
                       {"logLevel", kube::name_of(log_.level())},
                       {"isStopping", is_stopping_},
                       {"notReady", not_ready()},
                       {"notLive", not_live()},
                       {"election", std::move(election)},
                       {"manager", manager_.state()}});
}

// The control thread answers the probe: if it hangs, the probe times out.
std::string Process::not_live() const {
  const auto now = clock_.steady();
  const std::string problem = control_health_.problem(now);
  return problem.empty() && serving_ ? serving_health_.problem(now) : problem;
}

std::string Process::not_ready() const {
  if (is_stopping_) return "the process is ending";
  if (!manager_.is_ready())
    return "the first lists from the API server have not arrived: " + manager_.missing();
  // The metrics server has the same certificate, and starts last.
  if (serving_ && !(serving_->is_listening() && keeper_->has_certificate()))
    return "certificates are not ready";
  return {};
}

}  // namespace trainer
