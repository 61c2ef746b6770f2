#include "controller/process/run.hh"

#include <signal.h>
#include <sys/resource.h>

#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "controller/config/cluster_domain.hh"
#include "controller/config/configuration.hh"
#include "controller/kinds/registry.hh"
#include "controller/process/memory.hh"
#include "controller/process/process.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/manager/event_loop.hh"

namespace trainer {
namespace {

kube::LogLevel level_of(const std::string& name) {
  return kube::parse_log_level(name).value_or(kube::LogLevel::kInfo);
}

}  // namespace

bool raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur == limit.rlim_max) return true;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int run_controller(const ControllerOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  limit_kept_memory();
  kube::Log log(level_of(options.log_level), options.log_format);
  auto parsed = load_configuration(options);
  if (!parsed) {
    log.error("cannot start", {{"why", parsed.error().message}});
    return 1;
  }
  if (!raise_descriptor_limit())
    log.warn("descriptors", {{"why", "the limit of open files could not be raised"}});
  for (auto& warning : concurrency_warnings(parsed->configuration, full_registry()))
    parsed->warnings.push_back(std::move(warning));
  std::ifstream resolver("/etc/resolv.conf");
  const std::string resolv_conf{std::istreambuf_iterator<char>(resolver), {}};
  if (auto warning = cluster_domain_warning(parsed->configuration.clusterDomain, resolv_conf))
    parsed->warnings.push_back(*std::move(warning));
  for (const auto& warning : parsed->warnings) log.warn("configuration", {{"what", warning}});
  auto client = kube::load_config(options.kubeconfig, options.context);
  if (!client) {
    log.error("cannot start", {{"why", client.error().message}});
    return 1;
  }
  client->user_agent = "trainer/" TRAINER_VERSION;
  log.info("starting", {{"version", TRAINER_VERSION}, {"server", client->server}});
  const kube::MakeTransport make_transport = [&client](kube::asio::io_context& io,
                                                       const kube::TransportLimits& limits) {
    return kube::make_transport(io, *client, limits);
  };
  try {
    Process process(options, std::move(parsed->configuration), make_transport, production_registry,
                    log);
    return process.run(kube::run_coalescing_event_loop);
  } catch (const std::exception& error) {
    log.error("cannot go on", {{"why", error.what()}});
    return 1;
  }
}

}  // namespace trainer
