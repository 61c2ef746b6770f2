// An API server of pods in memory, and a node agent on it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kube/client/notifier.hh"
#include "kube/client/transport.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/merge_patch.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/run_tests.hh"
#include "local/node/agent.hh"
#include "local/node/spawn.hh"
#include "local/node/tiers.hh"

namespace trainer::test {

using kube::Json;

// It serves pods with versions, deletion with grace, watches; ConfigMaps and Secrets by path;
// tokens. Other writes are accepted and forgotten. It outlives its streams.
class PodApi final : public kube::Transport {
 public:
  explicit PodApi(kube::asio::io_context& io) : changed_(io.get_executor()) {}

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override {
    kube::HttpResponse response = answer(request);
    if (request.on_write) static_cast<void>(request.on_write());
    if (request.on_body && response.status == 200) request.on_body(response.body);
    co_return response;
  }
  kube::Task<kube::Result<std::unique_ptr<kube::HttpStream>>> open(
      kube::HttpRequest request) override {
    const bool is_of_claims = request.target.starts_with(kClaims);
    co_return std::unique_ptr<kube::HttpStream>(
        new Stream(*this, is_of_claims ? claim_lines_ : lines_));
  }

  void put(Json pod) {
    pod["metadata"].set("resourceVersion", std::to_string(++version_));
    const std::string name(pod.get("metadata").get_string("name"));
    const bool is_new = !pods.contains(name);
    publish(is_new ? "ADDED" : "MODIFIED", pod, lines_);
    pods[name] = std::move(pod);
  }
  void erase(const std::string& name) {
    Json pod = std::move(pods.at(name));
    pods.erase(name);
    pod["metadata"].set("resourceVersion", std::to_string(++version_));
    publish("DELETED", pod, lines_);
  }
  // Deletes the pod like a user.
  void remove(const std::string& name, int grace) {
    Json pod = pods.at(name);
    pod["metadata"].set("deletionTimestamp", "2026-01-01T00:00:00Z");
    pod["metadata"].set("deletionGracePeriodSeconds", grace);
    put(std::move(pod));
  }
  // PersistentVolumeClaims of the namespace.
  void put_claim(const std::string& name, const std::string& uid) {
    Json metadata = Json::object({{"name", name}, {"namespace", "ns"}, {"uid", uid}});
    metadata.set("resourceVersion", std::to_string(++version_));
    Json& claim = objects[kClaimsInNamespace + name];
    claim = Json::object({{"metadata", std::move(metadata)}});
    publish("ADDED", claim, claim_lines_);
  }
  void erase_claim(const std::string& name) {
    Json claim = std::move(objects.at(kClaimsInNamespace + name));
    objects.erase(kClaimsInNamespace + name);
    claim["metadata"].set("resourceVersion", std::to_string(++version_));
    publish("DELETED", claim, claim_lines_);
  }
  std::string phase(const std::string& name) const {
    const auto pod = pods.find(name);
    return pod == pods.end() ? "" : std::string(pod->second.get("status").get_string("phase"));
  }
  // Returns the status of its container; null before it has one.
  const Json& container(const std::string& name, std::size_t i = 0) const {
    const auto& statuses = pods.at(name).get("status").get_array("containerStatuses");
    return i < statuses.size() ? statuses[i] : Json::null();
  }
  const Json& ended(const std::string& name, std::size_t i = 0) const {
    return container(name, i).get_path({"state", "terminated"});
  }

  std::map<std::string, Json> pods;
  std::map<std::string, Json> objects;  // by path
  std::vector<std::string> events;      // "REASON message"
  std::map<std::string, Json> nodes;
  int tokens = 0;  // the number of tokens that were made

 private:
  using Lines = std::vector<std::string>;
  static constexpr const char* kClaims = "/api/v1/persistentvolumeclaims";
  inline static const std::string kClaimsInNamespace =
      "/api/v1/namespaces/ns/persistentvolumeclaims/";

  class Stream final : public kube::HttpStream {
   public:
    Stream(PodApi& api, const Lines& lines) : api_(api), lines_(lines), at_(lines.size()) {}
    int status() const override { return 200; }
    bool is_quiet() override { return at_ == lines_.size(); }
    kube::Task<kube::Result<std::string>> read_some(kube::Milliseconds) override {
      while (at_ == lines_.size()) co_await api_.changed_.wait();
      co_return lines_[at_++];
    }

   private:
    PodApi& api_;
    const Lines& lines_;
    std::size_t at_;
  };

  void publish(const char* type, const Json& object, Lines& lines) {
    const Json event = Json::object({{"type", type}, {"object", object}});
    lines.push_back(kube::print_json(event) + "\n");
    changed_.notify();
  }
  Json new_list() const {
    Json list = Json::object({{"items", Json::array()}});
    list["metadata"].set("resourceVersion", std::to_string(version_));
    return list;
  }
  static kube::HttpResponse respond(int status, const Json& body) {
    kube::HttpResponse response;
    response.status = status;
    response.body = kube::print_json(body);
    return response;
  }
  static kube::HttpResponse refuse(int status, const char* reason) {
    Json body = Json::object({{"kind", "Status"}, {"code", status}, {"reason", reason}});
    return respond(status, body.set("message", reason));
  }
  kube::HttpResponse answer(const kube::HttpRequest& request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const Json body = kube::parse_json(request.body).value_or(Json());
    if (path == "/api/v1/pods") {
      Json list = new_list();
      for (const auto& [name, pod] : pods) list["items"].push_back(pod);
      return respond(200, list);
    }
    if (path == kClaims) {
      Json list = new_list();
      for (const auto& [at, object] : objects)
        if (at.starts_with(kClaimsInNamespace)) list["items"].push_back(object);
      return respond(200, list);
    }
    const auto at = path.find("/pods/");
    if (at != std::string::npos) return answer_pod(request, path.substr(at + 6), body);
    if (request.method == "GET") {
      const auto found = objects.find(path);
      return found == objects.end() ? refuse(404, "NotFound") : respond(200, found->second);
    }
    if (path.ends_with("/serviceaccounts/default/token")) return respond(201, with_token(body));
    if (path.ends_with("/events"))
      events.push_back(std::string(body.get_string("reason")) + " " +
                       std::string(body.get_string("message")));
    if (path.starts_with("/api/v1/nodes")) nodes[path] = body;
    return respond(200, body);
  }
  Json with_token(Json request) {
    const Json& spec = request.get("spec");
    std::string token = "token-" + std::to_string(++tokens) + " of ";
    token += spec.get("boundObjectRef").get_string("name");
    token += " for " + spec.get_array("audiences").front().as_string();
    request["status"].set("token", std::move(token));
    return request;
  }
  kube::HttpResponse answer_pod(const kube::HttpRequest& request, const std::string& rest,
                                const Json& body) {
    const std::string name = rest.substr(0, rest.find('/'));
    const auto found = pods.find(name);
    if (found == pods.end()) return refuse(404, "NotFound");
    if (request.method == "DELETE") {
      const Json pod = found->second;
      if (body.get_path({"preconditions", "uid"}) != pod.get("metadata").get("uid"))
        return refuse(409, "Conflict");
      CHECK(body.get_int("gracePeriodSeconds", -1) == 0);
      erase(name);
      return respond(200, pod);
    }
    CHECK(body.get_path({"metadata", "uid"}) == found->second.get("metadata").get("uid"));
    put(kube::test::merge_patch(found->second, body));
    return respond(200, pods.at(name));
  }

  std::int64_t version_ = 1;
  Lines lines_;  // the lines of the watch of pods
  Lines claim_lines_;
  kube::Notifier changed_;
};

inline const std::string& own_program() {
  static const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  return path;
}

// The folder is removed after the test.
struct Folder {
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "node-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  Folder(const Folder&) = delete;
  std::filesystem::path path;
};

// Returns whether this machine has the tier. A test fails if it is missing, unless $NODE_TIERS says
// which tiers the machine has ("2 3"): then nothing is tried of the others.
inline bool has_tier(int tier) {
  static const auto probe = node::probe_tiers_by({"/proc/self/exe", "shim"});
  if (!probe) throw std::runtime_error(probe.error().message);
  const std::string name = "tier " + std::to_string(tier);
  const char* const tiers = std::getenv("NODE_TIERS");
  if (tiers != nullptr && std::string_view(tiers).find(name.back()) == std::string_view::npos) {
    kube::test::set_not_tried(name + " is not in $NODE_TIERS");
    return false;
  }
  const std::string problem = probe->problem_of(static_cast<node::Tier>(tier));
  if (!problem.empty())
    FAIL(name << ": " << problem << "; if this cannot be changed, set NODE_TIERS to the others");
  return true;
}

// A pod bound to the node, whose only container "c" runs these words.
inline Json make_pod(const std::string& name, const std::vector<std::string>& command) {
  static int made = 0;
  Json container = Json::object({{"name", "c"}, {"image", "none"}});
  container.set("command", Json::Array(command.begin(), command.end()));
  Json pod = Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  pod.set("metadata", Json::object({{"name", name}, {"namespace", "ns"}}));
  pod["metadata"].set("uid", "uid-" + std::to_string(getpid()) + "-" + std::to_string(++made));
  pod.set("spec", Json::object({{"nodeName", "local"}, {"restartPolicy", "Never"}}));
  pod["spec"].set("containers", Json::array({container}));
  return pod;
}

// These are the machine's clocks, but the wall clock was set.
struct SetClock final : kube::Clock {
  kube::Time now() const override { return kube::SystemClock().now() + ahead; }
  Steady steady() const override { return kube::SystemClock().steady(); }
  std::chrono::microseconds ahead{0};
};

struct NodeTest {
  explicit NodeTest(int tier) : tier_(tier) { start(); }
  ~NodeTest() {
    if (agent) kube::run_task(*io, agent->stop_pods());
    stop();
  }

  // A new agent, as of a new process; the API keeps its objects.
  void start() {
    std::map<std::string, Json> pods, objects;
    if (api) {
      pods = std::move(api->pods);
      objects = std::move(api->objects);
    }
    tasks.reset();
    client.reset();
    api.reset();
    io = std::make_unique<kube::asio::io_context>(1);
    api = std::make_unique<PodApi>(*io);
    for (auto& [name, pod] : pods) api->put(std::move(pod));
    api->objects = std::move(objects);
    client = std::make_unique<kube::ApiClient>(*api, clock, random);
    tasks = std::make_unique<kube::TaskGroup>(io->get_executor(), nullptr);
    NodeOptions options;
    options.state = folder.path;
    options.tier = tier_;
    options.mounts = mounts;
    options.token_check = std::chrono::milliseconds(50);
    options.on_note = [this](std::string_view note) { notes.emplace_back(note); };
    agent = std::make_unique<NodeAgent>(*io, *client, options);
    tasks->spawn("agent", agent->run());
  }
  // Stops it like kill -9: nothing is finished.
  void stop() {
    tasks->cancel();
    kube::settle(*io);
    agent.reset();
  }
  template <class Condition>
  void until(const std::string& what, Condition condition) {
    const bool has_come = kube::run_until(*io, condition);
    INFO("waiting until " << what << "; pods: " << pods_text());
    REQUIRE(has_come);
  }
  void until_phase(const std::string& name, const std::string& phase) {
    until(name + " is " + phase, [&] { return api->phase(name) == phase; });
  }
  std::string log(const std::string& pod, bool is_previous = false) {
    kube::server::LogQuery query;
    query.pod = {"ns", pod};
    query.is_previous = is_previous;
    std::string text;
    NodeAgent::WriteLog write = [&text](std::string piece) -> kube::Task<bool> {
      text += piece;
      co_return true;
    };
    const auto done = kube::run_task(*io, agent->read_logs(query, write));
    return done ? text : "error: " + done.error().message;
  }
  std::string pods_text() const {
    std::string text;
    for (const auto& [name, pod] : api->pods) text += kube::print_json(pod.get("status")) + "\n";
    for (const std::string& note : notes) text += note + "\n";
    return text;
  }
  std::filesystem::path directory(const std::string& pod) const {
    return folder.path / "pods" / api->pods.at(pod).get("metadata").get_string("uid");
  }
  Json report(const std::string& pod) const {
    const auto text = node::read_file(directory(pod) / node::kStatusFile);
    return text ? kube::parse_json(*text).value_or(Json()) : Json();
  }

  Folder folder;
  std::vector<std::string> mounts;
  std::vector<std::string> notes;
  SetClock clock;
  kube::SystemRandom random;
  std::unique_ptr<kube::asio::io_context> io;
  std::unique_ptr<PodApi> api;
  std::unique_ptr<kube::ApiClient> client;
  std::unique_ptr<kube::TaskGroup> tasks;
  std::unique_ptr<NodeAgent> agent;

 private:
  int tier_;
};

}  // namespace trainer::test
