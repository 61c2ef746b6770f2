#include "controller/local/daemon.hh"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <memory>
#include <utility>

#include "controller/kinds/batch/registration.hh"
#include "controller/kinds/registry.hh"
#include "controller/local/admit.hh"
#include "controller/local/report_server.hh"
#include "controller/process/process.hh"
#include "controller/process/run.hh"
#include "kube/manager/event_loop.hh"
#include "kube/model/json_text.hh"
#include "local/kinds/kinds.hh"
#include "local/server/local_server.hh"
#include "local/server/reserve.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr const char* kReadyFile = "daemon.json";

// There is one replica, and nothing asks for its metrics or its health.
Configuration local_configuration() {
  Configuration made;
  made.leaderElection.leaderElect = false;
  made.metrics.bindAddress = "0";
  made.health.healthProbeBindAddress = "0";
  made.jobsetController.mode = JobSetControllerMode::kOwn;
  made.statusServer.enabled = true;  // ReportServer
  return made;
}

ControllerOptions controller_options() {
  ControllerOptions made;
  made.no_webhooks = true;
  made.ns = "kubeflow-system";
  return made;
}

std::optional<NodeOptions> node_options(const LocalOptions& options, const LocalState& state,
                                        const kube::Log& log) {
  if (!options.has_node) return std::nullopt;
  NodeOptions made;
  made.state = state.directory->path();
  made.tier = options.tier;
  made.mounts = options.mounts;
  made.capacity = options.capacity;
  made.on_note = [&log](std::string_view what) { log.info("node", {{"what", std::string(what)}}); };
  return made;
}

int refuse(const std::string& why) {
  std::cerr << "trainer local: " << why << std::endl;
  return 1;
}

// The file is renamed into place once requests are served, since commands wait for it.
kube::Result<void> announce(const LocalServer& server) {
  Json ready = Json::object({{"pid", static_cast<std::int64_t>(::getpid())},
                             {"address", server.address()},
                             {"version", TRAINER_VERSION}});
  const std::vector<std::string>& unreadable = server.unreadable();
  ready.set("unreadable", Json::Array(unreadable.begin(), unreadable.end()));
  const std::vector<std::string>& changes = server.changes();
  ready.set("changes", Json::Array(changes.begin(), changes.end()));
  std::vector<std::string> notices;
  if (const auto& node = server.node_status()) {
    ready.set("tier", node->tier);
    notices = node->notices;
    ready.set("path", node->path);
  }
  ready.set("notices", Json::Array(notices.begin(), notices.end()));
  return Reserve(server.state().folder()).replace(kReadyFile, kube::print_json(ready) + "\n");
}

// If another controller reconciles the kinds, its rules count: those of this program might refuse
// what it allows.
Registry kinds_of(const LocalOptions& options, const KindOptions& kinds) {
  return options.has_controller ? production_registry(kinds) : Registry();
}

// Runs the control loops until a signal, and meanwhile takes the reports of pods.
kube::Result<int> run_controllers(LocalServer& server, const LocalOptions& options,
                                  kube::Log& log) {
  ReportServer reports(server, log);
  Configuration configuration = local_configuration();
  if (options.has_controller) {
    if (auto listening = reports.listen(); !listening) return tl::unexpected(listening.error());
    configuration.statusServer.port = reports.port();
  }
  const Process::MakeRegistry make_registry = [&options, &reports](const KindOptions& kinds) {
    Registry registry = kinds_of(options, kinds);
    reports.use(registry, kinds.server);
    const Registry local = local_registry();
    registry.insert(registry.end(), local.begin(), local.end());
    return registry;
  };
  const ControllerOptions controller = controller_options();
  Process process(controller, std::move(configuration), server.transports(), make_registry, log);
  if (options.has_controller) reports.start();
  if (auto announced = announce(server); !announced) return tl::unexpected(announced.error());
  server.fill_reserve();
  log.info("ready", {{"address", server.address()}});
  return process.run(kube::run_event_loop);
}

}  // namespace

int run_daemon(const LocalOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  ::mallopt(M_ARENA_MAX, 1);  // three threads run, and one of them works
  raise_descriptor_limit();
  kube::Log log(kube::LogLevel::kInfo, kube::Log::Format::kText);
  auto state = open_local_state(options.state, options.audit, kube::SystemClock().now());
  if (!state) return refuse(state.error().message);
  KindOptions admission;
  admission.configuration = local_configuration();
  LocalServerOptions serving;
  serving.node = node_options(options, *state, log);
  serving.make_admission = [&](kube::server::Api& api, kube::ApiClient& client) {
    return std::make_unique<Admitter>(kinds_of(options, admission), options.has_node, api, client,
                                      log);
  };
  serving.idle = options.idle;
  serving.on_idle = [] { ::kill(::getpid(), SIGTERM); };
  try {
    LocalServer server(std::move(*state), local::all_kinds(), std::move(serving), log);
    if (auto started = server.start(); !started) return refuse(started.error().message);
    const auto exit_code = run_controllers(server, options, log);
    if (!exit_code) return refuse(exit_code.error().message);
    if (server.state().is_in_place()) server.state().folder().remove(kReadyFile);
    server.stop();
    return *exit_code;
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace trainer
