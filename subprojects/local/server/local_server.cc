#include "local/server/local_server.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "kube/client/with_deadline.hh"
#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "local/server/transport.hh"

namespace trainer {

using kube::Json;
using kube::Milliseconds;
using kube::Result;
using kube::Task;

namespace {

// This many changes are kept, each with the text of its object: a watch from an older version gets
// 410, and its client lists again.
constexpr std::size_t kHistory = 100;
constexpr Milliseconds kPodsEnd{30'000};
constexpr Milliseconds kDrain{5'000};

// The uid is one of RFC 9562, version 4.
std::string make_uid(kube::Random& random) {
  const std::uint64_t high = (random.next() & 0xffff'ffff'ffff'0fffULL) | 0x4000U;
  const std::uint64_t low = (random.next() >> 2) | 0x8000'0000'0000'0000ULL;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffff'ffff'ffffULL);
}

// The characters are those of k8s.io/apimachinery/pkg/util/rand: no vowels, no letters that look
// like digits.
std::string make_name_suffix(kube::Random& random) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix.push_back(kLetters[random.next() % kLetters.size()]);
  return suffix;
}

kube::server::Request create_request(const kube::Resource& resource, const Json& object) {
  const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
  kube::server::Request request;
  request.method = "POST";
  request.target = kube::api_path(resource, {key.ns, ""}) + "?fieldManager=trainer-local";
  request.content_type = "application/json";
  request.body = kube::print_json(object);
  return request;
}

kube::server::Request delete_request(const kube::Resource& resource, const kube::ObjectKey& key) {
  kube::server::Request request;
  request.method = "DELETE";
  request.target = kube::api_path(resource, key);
  return request;
}

Json named(const kube::Resource& resource, std::string_view ns, std::string_view name) {
  Json metadata = Json::object({{"name", name}});
  if (!ns.empty()) metadata.set("namespace", ns);
  return Json::object({{"apiVersion", resource.api_version()},
                       {"kind", resource.kind},
                       {"metadata", std::move(metadata)}});
}

}  // namespace

LocalServer::LocalServer(LocalState state, kube::server::ServedKinds kinds,
                         LocalServerOptions options, const kube::Log& log)
    : state_(std::move(state)),
      options_(std::move(options)),
      log_(log),
      kinds_(std::move(kinds)),
      work_(io_.get_executor()),
      store_(state_.journal->version(), kHistory, kube::server::ObjectStore::Form::kTexts),
      api_(kinds_, store_, environment()),
      server_(io_, clock_, api_, state_.access, log, state_.audit.get()),
      admission_transport_(make_local_transport(io_, server_, Caller::kController)),
      admission_client_(*admission_transport_, clock_, random_),
      admission_(options_.make_admission ? options_.make_admission(api_, admission_client_)
                                         : nullptr),
      node_transport_(make_local_transport(io_, server_, Caller::kNode)),
      node_client_(*node_transport_, clock_, random_),
      tasks_(io_.get_executor(), [this](std::string_view task, std::string_view what) {
        log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
      }) {
  if (options_.node) node_.emplace(io_, node_client_, *options_.node);
  server_.set_hooks(hooks());
}

kube::server::Api::Environment LocalServer::environment() {
  kube::server::Api::Environment made;
  made.version.git_version += "+trainer-" TRAINER_VERSION;
  made.now = [this] { return clock_.now(); };
  made.new_uid = [this] { return make_uid(random_); };
  made.new_name_suffix = [this] { return make_name_suffix(random_); };
  return made;
}

ApiServer::Hooks LocalServer::hooks() {
  ApiServer::Hooks made;
  if (admission_) {
    made.admit = [this](kube::server::PendingWrite write, Caller caller) {
      return admission_->admit(std::move(write), caller);
    };
  }
  if (node_) {
    made.read_logs = [this](kube::server::LogQuery query, kube::WriteBody write) {
      return node_->read_logs(std::move(query), std::move(write));
    };
  }
  return made;
}

Result<void> LocalServer::restore() {
  // The CustomResourceDefinitions come first: they say which other kinds there are.
  if (auto restored = restore({kube::kCustomResourceDefinitions}); !restored) return restored;
  custom_kinds_.emplace(kinds_, store_, log_);
  std::vector<kube::Resource> others;
  for (const auto& kind : kinds_)
    if (kind.resource != kube::kCustomResourceDefinitions) others.push_back(kind.resource);
  if (auto restored = restore(others); !restored) return restored;
  store_.set_journal([this](const kube::server::Change& change) { state_.journal->write(change); });
  try {
    create_base_objects();
    if (!node_) forget_node();
  } catch (const StorageError& error) {
    return kube::fail(kube::ErrorCode::kInvalid, error.what());
  }
  return {};
}

Result<void> LocalServer::restore(const std::vector<kube::Resource>& resources) {
  auto set_aside = state_.journal->restore(store_, resources);
  if (!set_aside) return tl::unexpected(std::move(set_aside.error()));
  for (std::string& sentence : *set_aside) {
    log_.warn("unreadable object", {{"what", sentence}});
    unreadable_.push_back(std::move(sentence));
  }
  return {};
}

// These are the namespaces that every cluster has, and the ConfigMap that the SDK reads
// (manifests/base/public.yaml).
void LocalServer::create_base_objects() {
  const auto create = [this](const kube::Resource& resource, const Json& object) {
    if (!store_.find(resource, kube::ObjectMeta::of(object).key()))
      api_.handle(create_request(resource, object));
  };
  for (const char* name : {"default", "kube-system", "kube-public", "kubeflow-system"})
    create(kube::kNamespaces, named(kube::kNamespaces, "", name));
  Json config = named(kube::kConfigMaps, "kubeflow-system", "kubeflow-trainer-public");
  config.set("data", Json::object({{"kubeflow_trainer_version", "dev"}}));
  create(kube::kConfigMaps, config);
}

// The node of an earlier daemon is removed: pods would be placed on it, and never run or end.
void LocalServer::forget_node() {
  const kube::ObjectKey key("", "local");
  if (store_.find(kube::kNodes, key)) api_.handle(delete_request(kube::kNodes, key));
}

Result<void> LocalServer::listen() {
  const unsigned short kept = kept_port(state());
  const auto port =
      listen_on_kept(kept, [this](unsigned short wanted) { return server_.listen(wanted); });
  if (!port) return tl::unexpected(port.error());
  address_ = fmt::format("https://127.0.0.1:{}", *port);
  if (kept != 0 && *port != kept)
    changes_.push_back(
        fmt::format("port {} is taken by another program: the server has port {} from now on. "
                    "Clients that read {} again find it; copies of that file have to be made again",
                    kept, *port, (state().path() / "kubeconfig").string()));
  if (*port != kept) {
    if (auto written = keep_port(state(), *port); !written) return written;
  }
  return state().folder().replace("kubeconfig", kubeconfig_of(access(), address_));
}

Result<void> LocalServer::start() {
  if (auto restored = restore(); !restored) return restored;
  if (auto listening = listen(); !listening) return listening;
  state_.directory->folder().remove(kStaysFile);  // it is a file of an earlier daemon
  housekeeping_.emplace(io_.get_executor(), clock_, api_, *custom_kinds_, log_);
  tasks_.spawn("housekeeping", housekeeping_->run());
  if (node_) {
    node_status_ = node_->status();
    tasks_.spawn("node", node_->run());
  }
  if (options_.on_idle) tasks_.spawn("idle", await_idle());
  thread_ = std::thread([this] { run(); });
  return {};
}

void LocalServer::run() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      // A bug in one handler must not stop the others.
      log_.error("serving", {{"why", error.what()}});
    }
  }
}

void LocalServer::fill_reserve() {
  kube::asio::post(io_, [this] { state_.journal->fill_reserve(); });
}

kube::MakeTransport LocalServer::transports() {
  return [this](kube::asio::io_context& io, const kube::TransportLimits&) {
    return make_local_transport(io, server_, Caller::kController);
  };
}

// A suspended or finished job can wait for the next start; a pod, or a Job that makes pods, cannot.
bool LocalServer::has_work() const {
  const auto is_active = [](const auto& entry) { return !kube::is_pod_over(*entry.second.get()); };
  const auto is_unfinished = [](const auto& entry) {
    const auto job = entry.second.get();
    return !job->get("spec").get_bool("suspend") && !kube::has_condition(*job, "Complete") &&
           !kube::has_condition(*job, "Failed");
  };
  return std::ranges::any_of(store_.all(kube::kPods), is_active) ||
         std::ranges::any_of(store_.all(kube::kJobs), is_unfinished);
}

Task<void> LocalServer::await_idle() {
  const auto begin = clock_.steady();
  auto busy_at = begin;
  constexpr std::chrono::seconds kLongest(30);
  const bool stays = options_.idle.count() == 0;
  const auto pause =
      stays ? kLongest : std::clamp(options_.idle / 10, std::chrono::seconds(1), kLongest);
  for (;;) {
    co_await kube::sleep(clock_, pause);
    if (!state_.directory->is_in_place()) {
      log_.warn("the state directory was removed", {{"then", "ends"}});
      break;
    }
    const auto now = clock_.steady();
    if (has_work()) busy_at = now;
    if (stays || now - std::max(busy_at, server_.quiet_since()) < options_.idle) continue;
    if (state_.directory->folder().has(kStaysFile)) continue;
    log_.info("idle", {{"seconds", std::to_string(options_.idle.count())}, {"then", "ends"}});
    break;
  }
  options_.on_idle();
}

Task<void> LocalServer::shut_down() {
  if (node_) co_await kube::with_deadline(kPodsEnd, node_->stop_pods());
  tasks_.cancel();
  co_await kube::with_deadline(kDrain, tasks_.join());
  server_.stop();
  co_await kube::with_deadline(kDrain, server_.drained());
}

void LocalServer::stop() {
  if (!thread_.joinable()) return;
  kube::asio::post(io_, [this] {
    kube::asio::co_spawn(io_, shut_down(), [this](std::exception_ptr) { io_.stop(); });
  });
  thread_.join();
}

}  // namespace trainer
