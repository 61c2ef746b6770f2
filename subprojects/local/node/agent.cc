#include "local/node/agent.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "kube/client/object_sink.hh"
#include "kube/client/watcher.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "local/node/files.hh"
#include "local/node/machine.hh"
#include "local/node/owned.hh"
#include "local/node/spawn.hh"
#include "local/node/strays.hh"

extern char** environ;

namespace trainer {

using kube::ErrorCode;
using kube::Json;
using kube::Milliseconds;
using kube::Result;
using kube::Task;
using node::PodName;
using node::PodRunner;
using node::Tier;

namespace {

// The Python environment that is active where the daemon was started comes first.
void put_venv_first(kube::StringMap& environment) {
  const auto venv = environment.find("VIRTUAL_ENV");
  if (venv == environment.end() || venv->second.empty()) return;
  const std::string programs = venv->second + "/bin";
  std::string& path = environment["PATH"];
  if (path != programs && !path.starts_with(programs + ":"))
    path = path.empty() ? programs : programs + ":" + path;
}

std::vector<node::Mount> read_mounts(const std::vector<std::string>& texts) {
  std::vector<node::Mount> mounts;
  for (const std::string& text : texts) {
    const auto colon = text.rfind(":/");
    std::error_code error;
    const std::filesystem::path source = std::filesystem::absolute(text.substr(0, colon), error);
    if (colon == std::string::npos || colon == 0)
      throw std::runtime_error(fmt::format("--mount {}: write DIRECTORY:/PATH", text));
    if (!std::filesystem::exists(source, error))
      throw std::runtime_error(fmt::format("--mount {}: {} does not exist", text, source.native()));
    mounts.push_back({source.lexically_normal(), text.substr(colon + 1), false});
  }
  return mounts;
}

}  // namespace

NodeAgent::NodeAgent(kube::asio::io_context& io, kube::ApiClient& client, NodeOptions options)
    : options_(std::move(options)), node_(io, client, options_) {
  find_tier();
  find_facts();
  connect_runners();
}

NodeAgent::~NodeAgent() {
  node_.removals.join();
}

void NodeAgent::find_tier() {
  const auto probe = node::probe_tiers_by(options_.shim);
  if (!probe) throw std::runtime_error(probe.error().message);
  const Tier best = probe->best();
  const Tier tier = options_.tier ? static_cast<Tier>(*options_.tier) : best;
  if (tier < best)
    throw std::runtime_error(
        fmt::format("tier {} is not to be had on this machine ({}): use tier {}",
                    static_cast<int>(tier), probe->problem_of(tier), static_cast<int>(best)));
  node_.facts.tier = tier;
  status_.tier = static_cast<int>(tier);
  if (tier != Tier::kNamespaces) {
    const auto above = static_cast<Tier>(static_cast<int>(tier) - 1);
    const std::string problem = probe->problem_of(above);
    node_.facts.tier_problem = problem.empty() ? "as asked for" : problem;
    status_.notices.push_back(fmt::format("tier {}: {}", status_.tier, node_.facts.tier_problem));
  }
  find_network(*probe);
}

void NodeAgent::find_network(const node::TierProbe& probe) {
  const bool is_first_tier = node_.facts.tier == Tier::kNamespaces;
  node_.facts.has_network = is_first_tier && probe.network_problem.empty();
  if (node_.facts.has_network) return;
  status_.notices.push_back(fmt::format(
      "other users of this machine{} can connect to the ports of pods, and most frameworks trust "
      "all that connect{}: run here only what they may see and change{}",
      node_.facts.tier == Tier::kPlain
          ? ", and other machines where a program listens on all addresses,"
          : "",
      is_first_tier ? " (" + probe.network_problem + ")" : "",
      is_first_tier ? "" : ", or use a machine that `local status` shows in tier 1"));
}

void NodeAgent::find_facts() {
  kube::StringMap& environment = node_.facts.environment;
  environment =
      options_.environment.empty() ? node::base_environment(environ) : options_.environment;
  put_venv_first(environment);
  status_.path = environment["PATH"];
  node_.facts.mounts = read_mounts(options_.mounts);
  node_.facts.working_dir = options_.working_dir;
  node_.allocatable = node::capacity_of_machine(options_.capacity);
  const auto state = node::OwnedDirectory::make(options_.state);
  if (!state) throw std::runtime_error(state.error().message);
  for (const char* name : {"pods", "volumes", "claims"})
    if (const auto made = state->make_folder(name); !made)
      throw std::runtime_error(made.error().message);
}

void NodeAgent::connect_runners() {
  node_.replacements = [this](const PodName& of) {
    node::Replacements words;
    for (const auto& [uid, runner] : runners_)
      if (runner->name().ns == of.ns && !runner->name().subdomain.empty())
        for (const std::string& name : runner->name().names()) words[name] = runner->address();
    return words;
  };
  node_.neighbours = [this](const PodName& of) {
    std::map<PodName, std::string> found;
    for (const auto& [uid, runner] : runners_)
      if (runner->name().ns == of.ns && runner->name().subdomain == of.subdomain)
        found[runner->name()] = runner->address();
    return found;
  };
  node_.is_taken = [this](const std::string& address, const std::string& uid) {
    return std::any_of(runners_.begin(), runners_.end(), [&address, &uid](const auto& each) {
      const PodRunner& other = *each.second;
      return other.uid() != uid && other.has_processes() && other.address() == address;
    });
  };
}

Task<void> NodeAgent::run() {
  node_.tasks.spawn("directories", node_.directories.run());
  node_.tasks.spawn("events", node_.events.run());
  node_.tasks.spawn("node", publish_node());
  node_.tasks.spawn("claims", watch_claims());
  node_.tasks.spawn("tokens", renew_tokens());
  co_await node_.tasks.join();
}

Task<void> NodeAgent::publish_node() {
  constexpr Milliseconds kRetry{1'000};
  kube::Clock& clock = node_.client.clock();
  const kube::ObjectKey key{"", options_.name};
  for (;;) {
    Json metadata = Json::object({{"name", options_.name}});
    metadata.set("labels", node::node_labels(options_.name, node_.facts.tier));
    Json object = Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}});
    metadata.erase("name");
    Json labels = Json::object({{"metadata", metadata}});
    // The label is absent for a create, and null to remove it by a patch.
    Json::Object& made = object["metadata"]["labels"].as_object();
    made.keep_if([](const auto& label) { return !label.second.is_null(); });
    auto done = co_await node_.client.create(kube::kNodes, std::move(object), "kubelet");
    if (!done && done.error().code == ErrorCode::kAlreadyExists)
      done = co_await node_.client.merge_patch(kube::kNodes, key, std::move(labels));
    Json status = Json::object();
    status.set("status", node::node_status(options_.name, node_.allocatable, clock.now()));
    if (done)
      done = co_await node_.client.merge_patch(kube::kNodes, key, std::move(status), "status");
    if (done) co_return;
    node_.note("the Node cannot be written: " + done.error().message);
    co_await kube::sleep(clock, kRetry);
  }
}

// ---- claims

// Pods are watched afterwards: their volumes are in the directories that the first list of claims
// has set.
Task<void> NodeAgent::watch_claims() {
  kube::ObjectSink::Handlers handlers;
  handlers.on_upsert = [this](const Json& claim) { node_.claims.add(claim); };
  handlers.on_remove = [this](const std::string& uid) {
    node_.claims.remove(uid);
    remove_claims();
  };
  handlers.on_listed = [this, is_first = true]() mutable {
    node_.claims.end_list();
    if (std::exchange(is_first, false)) node_.tasks.spawn("pods", watch_pods());
  };
  kube::ObjectSink sink(std::move(handlers));
  kube::WatchOptions options;
  co_await kube::run_watch(node_.client, kube::kPersistentVolumeClaims, sink, std::move(options));
}

// Does what kubernetes.io/pvc-protection does: claims are not removed while a pod uses them.
void NodeAgent::remove_claims() {
  if (!are_pods_listed_) return;
  const auto is_used = [this](const std::filesystem::path& folder) {
    return std::any_of(runners_.begin(), runners_.end(),
                       [&folder](const auto& each) { return each.second->uses(folder); });
  };
  for (auto& folder : node_.claims.take_unused(is_used)) node_.remove_later(std::move(folder));
}

// ---- pods

Task<void> NodeAgent::watch_pods() {
  kube::ObjectSink::Handlers handlers;
  handlers.on_upsert = [this](Json pod) { on_pod(std::move(pod)); };
  handlers.on_remove = [this](const std::string& uid) {
    const auto found = runners_.find(uid);
    if (found == runners_.end()) return;
    const Runner runner = found->second;
    runner->remove();
    if (!running_.contains(uid)) forget(runner);
  };
  handlers.on_listed = [this] {
    are_pods_listed_ = true;
    remove_orphans();
    remove_claims();
  };
  kube::ObjectSink sink(std::move(handlers));
  kube::WatchOptions options;
  co_await kube::run_watch(node_.client, kube::kPods, sink, std::move(options));
}

void NodeAgent::on_pod(Json pod) {
  const std::string uid(pod.get("metadata").get_string("uid"));
  auto found = runners_.find(uid);
  if (found == runners_.end()) {
    found = runners_.emplace(uid, std::make_shared<PodRunner>(node_, std::move(pod))).first;
    names_changed(found->second->name());
  } else {
    found->second->update(std::move(pod));
  }
  const Runner runner = found->second;
  const bool is_bound = runner->pod().get("spec").get_string("nodeName") == options_.name;
  if (is_bound && running_.insert(uid).second)
    node_.tasks.spawn("pod " + runner->name().hostname, run_pod(runner));
  if (kube::is_pod_over(runner->pod())) remove_claims();
}

Task<void> NodeAgent::run_pod(Runner runner) {
  co_await runner->run();
  forget(runner);
}

Task<void> NodeAgent::renew_tokens() {
  for (;;) {
    co_await kube::sleep(node_.client.clock(), options_.token_check);
    std::vector<Runner> due;
    for (const auto& [uid, runner] : runners_)
      if (runner->are_tokens_due()) due.push_back(runner);
    for (const Runner& runner : due) co_await PodRunner::renew_tokens(runner);
  }
}

void NodeAgent::forget(const Runner& runner) {
  running_.erase(runner->uid());
  runners_.erase(runner->uid());
  const auto same = [&runner](const auto& each) { return each.second->name() == runner->name(); };
  if (std::none_of(runners_.begin(), runners_.end(), same)) node_.addresses.release(runner->name());
  remove_claims();
}

// Hosts files name all pods of a subdomain, which come in bursts.
void NodeAgent::names_changed(const PodName& name) {
  if (node_.facts.tier != Tier::kNamespaces || name.subdomain.empty()) return;
  if (!changed_names_.emplace(name.ns, name.subdomain).second) return;
  boost::asio::post(node_.io, [this, name] {
    changed_names_.erase({name.ns, name.subdomain});
    for (const auto& [uid, runner] : runners_)
      if (runner->name().ns == name.ns && runner->name().subdomain == name.subdomain &&
          runner->has_processes())
        runner->refresh_hosts();
  });
}

// Removes pods that an earlier daemon has left, and whose Pod objects were deleted meanwhile.
void NodeAgent::remove_orphans() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(node_.pods(), error)) {
    const std::string uid = entry.path().filename();
    if (runners_.contains(uid)) continue;
    node::kill_marked(uid);
    node_.remove_later(entry.path());
  }
}

NodeAgent::Runner NodeAgent::find_runner(const kube::ObjectKey& key) const {
  for (const auto& [uid, runner] : runners_)
    if (runner->key() == key) return runner;
  return nullptr;
}

Task<void> NodeAgent::stop_pods() {
  constexpr int kGrace = 5;
  constexpr Milliseconds kRound{50};
  const auto is_followed = [](const auto& each) { return each.second->is_followed(); };
  const auto alive = [this, &is_followed] {
    return std::any_of(runners_.begin(), runners_.end(), is_followed);
  };
  for (const auto& [uid, runner] : runners_) runner->stop(kGrace);
  kube::Clock& clock = node_.client.clock();
  const auto until = clock.steady() + std::chrono::seconds(2 * kGrace);
  while (alive() && clock.steady() < until) co_await kube::sleep(clock, kRound);
}

}  // namespace trainer
