// These are `trainer local up|down|status|stop|logs|env`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <ostream>

#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/local.hh"
#include "controller/cli/local_daemon.hh"
#include "controller/cli/local_jobs.hh"
#include "controller/cli/log_print.hh"
#include "controller/local/daemon.hh"
#include "kube/model/quantity.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

// Prints one sentence, and returns the exit code.
int refuse(const Console& console, std::string_view subcommand, const kube::Error& error) {
  console.err << fmt::format("{}: local {}: {}\n", console.program, subcommand, error.message);
  return kExitRefused;
}

struct Connected {
  DaemonStatus daemon;
  std::unique_ptr<Cluster> cluster;
};

// Errors: no daemon is up.
Result<Connected> connect(const LocalDaemon& daemon, const std::string& ns = "") {
  if (auto checked = daemon.check(); !checked) return tl::unexpected(checked.error());
  auto running = daemon.status();
  if (!running) {
    return kube::fail(
        kube::ErrorCode::kNotFound,
        "no daemon is up: `trainer local up` starts it, `trainer local run FILE` too");
  }
  auto cluster = Cluster::connect({daemon.kubeconfig(), "", ns});
  if (!cluster) return tl::unexpected(cluster.error());
  return Connected{std::move(*running), std::move(*cluster)};
}

std::string lines_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "  " + plain_text(sentence) + "\n";
  return text;
}

std::string summary(const DaemonStatus& running) {
  std::string text = fmt::format("up at {}, {}process {}, version {}\n", running.address,
                                 running.tier ? fmt::format("tier {}, ", *running.tier) : "",
                                 running.pid, running.version);
  if (!running.tier) text += fmt::format("  {}\n", kNoNode);
  text += lines_of(running.notices) + lines_of(running.unreadable);
  return text;
}

std::vector<std::string> daemon_words(const LocalUpOptions& options) {
  std::vector<std::string> words{"--idle", std::to_string(options.idle_seconds)};
  if (!options.has_node) words.emplace_back("--no-node");
  if (!options.has_controller) words.emplace_back("--no-controller");
  const auto add = [&words](const char* flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  if (options.tier) add("--tier", std::to_string(*options.tier));
  for (const std::string& mount : options.mounts) add("--mount", mount);
  for (const std::string& amount : options.capacity) add("--capacity", amount);
  if (!options.audit.empty()) add("--audit", options.audit);
  return words;
}

// Relative paths begin in the command's directory; the daemon's directory is another.
void make_absolute(LocalUpOptions& options) {
  namespace fs = std::filesystem;
  if (!options.audit.empty()) options.audit = fs::absolute(options.audit).string();
  for (std::string& mount : options.mounts)
    if (!mount.empty()) mount = fs::absolute(mount).string();
}

// This is checked before a daemon is started: the daemon refuses only things that it finds on this
// machine.
Result<std::map<std::string, std::string>> read_capacity(const LocalUpOptions& options) {
  std::map<std::string, std::string> capacity;
  for (const std::string& text : options.capacity) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return kube::fail(kube::ErrorCode::kInvalid, "--capacity {}: write NAME=AMOUNT", text);
    const std::string amount = text.substr(equals + 1);
    const auto quantity = kube::Quantity::parse(amount);
    if (!quantity)
      return kube::fail(kube::ErrorCode::kInvalid, "--capacity {}: {}", text,
                        quantity.error().message);
    if (*quantity < kube::Quantity())
      return kube::fail(kube::ErrorCode::kInvalid, "--capacity {}: write an amount of 0 or more",
                        text);
    capacity[text.substr(0, equals)] = amount;
  }
  return capacity;
}

int be_the_daemon(const LocalUpOptions& options, std::map<std::string, std::string> capacity) {
  LocalOptions made;
  made.state = std::filesystem::absolute(options.state).lexically_normal();
  made.has_node = options.has_node;
  made.has_controller = options.has_controller;
  made.tier = options.tier;
  made.mounts = options.mounts;
  made.capacity = std::move(capacity);
  made.idle = std::chrono::seconds(options.idle_seconds);
  made.audit = options.audit;
  return run_daemon(made);
}

Say say_on(std::ostream& out) {
  return [&out](std::string_view sentence) { out << sentence << '\n' << std::flush; };
}

// Jobs that were suspended before may have pods that still end.
Task<Result<void>> stop_all(kube::ApiClient& client, Say say) {
  const auto jobs = co_await list_jobs(client);
  if (!jobs) co_return tl::unexpected(jobs.error());
  std::vector<ObjectKey> unfinished;
  for (const Json& job : *jobs)
    if (!is_finished(job)) unfinished.push_back(kube::ObjectMeta::of(job).key());
  co_return co_await stop_jobs(client, std::move(unfinished), /*is_killed=*/false, std::move(say));
}

Task<Result<void>> stop_named(kube::ApiClient& client, std::vector<ObjectKey> jobs, bool is_killed,
                              Say say) {
  for (const ObjectKey& job : jobs) {
    const auto object = co_await client.get(kTrainJobs, job);
    if (!object) co_return tl::unexpected(object.error());
    const auto has_pods = co_await has_running_pods(client, job);
    if (!has_pods) co_return tl::unexpected(has_pods.error());
    if (!is_running(*object) && !*has_pods) {
      co_return kube::fail(kube::ErrorCode::kConflict, "TrainJob {} does not run: it is {}",
                           job.to_string(), object->get("status").get_string("phase", "new"));
    }
  }
  co_return co_await stop_jobs(client, std::move(jobs), is_killed, std::move(say));
}

std::string table_of(const std::vector<Json>& jobs) {
  std::string text = fmt::format("{:<16} {:<32} {:<12} {:<7} {}\n", "NAMESPACE", "JOB", "STATE",
                                 "NODES", "RESTARTS");
  for (const Json& job : jobs) {
    const ObjectKey key = kube::ObjectMeta::of(job).key();
    const Json& status = job.get("status");
    text += fmt::format("{:<16} {:<32} {:<12} {:<7} {}\n", key.ns, key.name,
                        status.get_string("phase", "-"),
                        status.get("nodes").get_string("summary", "-"), status.get_int("restarts"));
  }
  return text;
}

Json::Array short_list(const std::vector<Json>& jobs) {
  Json::Array list;
  for (const Json& job : jobs) {
    const ObjectKey key = kube::ObjectMeta::of(job).key();
    list.push_back(Json::object({{"namespace", key.ns},
                                 {"name", key.name},
                                 {"phase", job.get("status").get("phase")},
                                 {"nodes", job.get("status").get("nodes")},
                                 {"restarts", job.get("status").get_int("restarts")}}));
  }
  return list;
}

// Returns nullopt if the daemon has none (--no-node).
Task<Result<Json>> get_capacity(kube::ApiClient& client) {
  const auto node = co_await client.get(kube::kNodes, ObjectKey("", "local"));
  if (!node && node.error().code == kube::ErrorCode::kNotFound) co_return Json();
  if (!node) co_return tl::unexpected(node.error());
  co_return node->get_path({"status", "allocatable"});
}

// This is `up` while a daemon is up. Jobs of it may run, so a daemon that `run` has started is not
// started again: from now on it only stays.
int use_running(const LocalDaemon& daemon, const DaemonStatus& running,
                const std::vector<std::string>& wanted, Console& console) {
  const std::vector<std::string> plain = daemon_words(LocalUpOptions());  // --idle 0
  const std::vector<std::string> known = daemon.options();
  std::vector<std::string> stays = known;
  std::copy_n(plain.begin(), std::min(plain.size(), stays.size()), stays.begin());
  const bool is_to_stay = wanted == plain || wanted == stays;
  const bool is_used = is_to_stay || wanted == known;
  console.err << fmt::format("{}: local up: it is {}{}", console.program, summary(running),
                             is_used ? "" : "To change its options, `trainer local down` first.\n");
  if (!is_used) return kExitRefused;
  if (!is_to_stay || known == stays) return kExitDone;
  const auto done = daemon.stay(stays);
  return done ? kExitDone : refuse(console, "up", done.error());
}

}  // namespace

int run_local_up(const LocalUpOptions& given, Console& console) {
  LocalUpOptions options = given;
  make_absolute(options);
  auto capacity = read_capacity(options);
  if (!capacity) return refuse(console, "up", capacity.error());
  if (options.is_foreground) return be_the_daemon(options, std::move(*capacity));
  const LocalDaemon daemon(options.state);
  if (const auto checked = daemon.check(); !checked) return refuse(console, "up", checked.error());
  const std::vector<std::string> wanted = daemon_words(options);
  if (const auto running = daemon.status()) return use_running(daemon, *running, wanted, console);
  const bool is_new = daemon.is_new();
  const auto running = daemon.start(wanted);
  if (!running) return refuse(console, "up", running.error());
  // Another command was first.
  if (daemon.options() != wanted) return use_running(daemon, *running, wanted, console);
  const auto connected = connect(daemon);
  if (!connected) return refuse(console, "up", connected.error());
  const auto made = connected->cluster->run(create_missing_runtimes(connected->cluster->client()));
  if (!made) return refuse(console, "up", made.error());
  console.out << summary(*running) << lines_of(running->changes)
              << "kubectl and the SDK find it after: eval \"$(trainer local env)\"\n";
  if (is_new) console.out << kNoSandbox;
  return kExitDone;
}

int run_local_down(const std::string& state, Console& console) {
  const LocalDaemon daemon(state);
  if (const auto checked = daemon.check(); !checked)
    return refuse(console, "down", checked.error());
  const auto running = daemon.status();
  if (!running) {
    console.err << console.program << ": local down: no daemon is up\n";
    return kExitDone;
  }
  // The daemon is ended also if it does not answer. If it answers, its jobs are suspended first,
  // since its end would kill their pods.
  if (auto connected = connect(daemon)) {
    Cluster& cluster = *connected->cluster;
    const auto stopped = cluster.run(stop_all(cluster.client(), say_on(console.out)));
    if (!stopped) refuse(console, "down", stopped.error());
    if (!stopped && running->tier && cluster.run(list_jobs(cluster.client()))) {
      console.err << fmt::format("The daemon goes on. `kill {}` ends it, and all pods with it.\n",
                                 running->pid);
      return kExitRefused;
    }
  }
  const auto done = daemon.stop(*running);
  return done ? kExitDone : refuse(console, "down", done.error());
}

int run_local_status(const LocalStatusOptions& options, Console& console) {
  const auto connected = connect(LocalDaemon(options.state));
  if (!connected) return refuse(console, "status", connected.error());
  Cluster& cluster = *connected->cluster;
  const auto capacity = cluster.run(get_capacity(cluster.client()));
  if (!capacity) return refuse(console, "status", capacity.error());
  const auto jobs = cluster.run(list_jobs(cluster.client()));
  if (!jobs) return refuse(console, "status", jobs.error());
  std::string text = summary(connected->daemon);
  std::vector<std::string> amounts;
  for (const auto& [name, amount] : capacity->is_object() ? capacity->as_object() : Json::Object())
    amounts.push_back(fmt::format("{} {}", name, amount.is_string() ? amount.as_string() : "?"));
  if (!amounts.empty()) text += fmt::format("  for jobs: {}\n", fmt::join(amounts, ", "));
  if (!jobs->empty()) text += table_of(*jobs);
  Json value = connected->daemon.json;
  value.set("allocatable", *capacity);
  value.set("jobs", short_list(*jobs));
  print_value(value, text, options.format, console.out);
  return kExitDone;
}

int run_local_stop(const LocalStopOptions& options, Console& console) {
  const auto connected = connect(LocalDaemon(options.state), options.ns);
  if (!connected) return refuse(console, "stop", connected.error());
  Cluster& cluster = *connected->cluster;
  std::vector<ObjectKey> jobs;
  for (const std::string& name : options.jobs) jobs.push_back({cluster.ns(), name});
  const auto done = cluster.run(
      stop_named(cluster.client(), std::move(jobs), options.is_killed, say_on(console.out)));
  return done ? kExitDone : refuse(console, "stop", done.error());
}

int run_local_logs(const LocalLogsOptions& options, const Registry& registry, Console& console) {
  const LocalDaemon daemon(options.state);
  if (const auto connected = connect(daemon); !connected)
    return refuse(console, "logs", connected.error());
  LogsOptions logs = options.logs;
  logs.cluster.kubeconfig = daemon.kubeconfig();
  logs.ends_when_suspended = true;  // `local down` suspends all jobs, and nothing follows after it
  return run_logs(logs, registry, console);
}

int run_local_ui(const LocalUiOptions& options, const Registry& registry, Console& console) {
  const LocalDaemon daemon(options.state);
  if (const auto connected = connect(daemon); !connected)
    return refuse(console, "ui", connected.error());
  UiOptions ui = options.ui;
  ui.cluster.kubeconfig = daemon.kubeconfig();
  return run_ui(ui, registry, console);
}

int run_local_env(const std::string& state, Console& console) {
  const LocalDaemon daemon(state);
  if (const auto checked = daemon.check(); !checked) return refuse(console, "env", checked.error());
  if (!daemon.status()) {
    console.err << console.program
                << ": local env: no daemon is up: `trainer local up` starts it\n";
    return kExitRefused;
  }
  console.out << fmt::format("export KUBECONFIG={} TRAINER_LOCAL_STATE={}\n",
                             kube::quoted_for_sh(daemon.kubeconfig()),
                             kube::quoted_for_sh(std::filesystem::absolute(state).string()));
  return kExitDone;
}

}  // namespace trainer
