#include "controller/admission/webhook_registrar.hh"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "kube/client/object_sink.hh"
#include "kube/client/task_group.hh"
#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr kube::Milliseconds kRetry{2'000};
constexpr kube::Milliseconds kIdle{3'600'000};
constexpr const char* kManager = "trainer";

}  // namespace

// These are the configurations of one kind that have one of the names.
struct CaInjector::Watched {
  Watched(const kube::Resource& kind, const std::set<std::string>& names, kube::Notifier& wake)
      : resource(kind),
        sink({[this, &names, &wake](Json object) {
                const auto meta = kube::ObjectMeta::of(object);
                if (!names.contains(meta.name)) return;
                objects[meta.uid] = std::move(object);
                wake.notify();
              },
              [this](const std::string& uid) { objects.erase(uid); },
              [this, &wake] {
                is_synced = true;
                wake.notify();
              }}) {}

  kube::Resource resource;
  std::map<std::string, Json> objects;  // by uid
  bool is_synced = false;
  kube::ObjectSink sink;
};

CaInjector::CaInjector(kube::asio::io_context& io, kube::ApiClient& client,
                       std::set<std::string> names, const kube::Log& log, bool has_mutating)
    : io_(io), client_(client), names_(std::move(names)), log_(log), wake_(io.get_executor()) {
  for (const auto& resource :
       {kube::kMutatingWebhookConfigurations, kube::kValidatingWebhookConfigurations})
    if (has_mutating || resource != kube::kMutatingWebhookConfigurations)
      watched_.push_back(std::make_unique<Watched>(resource, names_, wake_));
}

CaInjector::~CaInjector() = default;

void CaInjector::set_ca(std::string ca_pem) {
  ca_pem_ = std::move(ca_pem);
  wake_.notify();
}

bool CaInjector::needs_patch() const {
  if (ca_pem_.empty()) return false;
  for (const auto& watched : watched_)
    for (const auto& [uid, object] : watched->objects)
      if (!ca_bundle_patch(object, ca_pem_).empty()) return true;
  return false;
}

Task<void> CaInjector::run() {
  std::string lost;
  kube::TaskGroup tasks(io_.get_executor(), [&](std::string_view task, std::string_view what) {
    lost = std::string(task) + ": " + std::string(what);
    tasks.cancel();
  });
  kube::WatchOptions options;
  for (const auto& watched : watched_)
    tasks.spawn(watched->resource.plural,
                kube::run_watch(client_, watched->resource, watched->sink, options));
  tasks.spawn("caBundle", inject_forever());
  co_await tasks.join();
  if (!lost.empty())
    throw std::runtime_error(lost);  // without one of the watches the others are useless
}

Task<void> CaInjector::inject_forever() {
  while (true) {
    const bool is_done = co_await inject_all();
    // A change that came during the requests had no timer to cancel.
    if (is_done && needs_patch()) continue;
    co_await wake_.wait_for(client_.clock(), is_done ? kIdle : kRetry);
  }
}

Task<bool> CaInjector::inject_all() {
  if (ca_pem_.empty()) co_return true;
  bool is_done = true;
  for (const auto& watched : watched_) {
    // This is a copy, since the watch changes the objects while a patch is in flight.
    const std::map<std::string, Json> objects = watched->objects;
    for (const auto& [uid, object] : objects) {
      Json operations = ca_bundle_patch(object, ca_pem_);
      if (operations.empty()) continue;
      const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
      const std::string what = watched->resource.kind + " " + key.name;
      const auto answer = co_await inject(watched->resource, key, object, std::move(operations));
      auto patched =
          answer.and_then([](const std::string& text) { return kube::parse_json(text); });
      if (patched) {
        log_.info("caBundle set", {{"object", what}});
        watched->objects[uid] = std::move(*patched);
      } else if (patched.error().code == kube::ErrorCode::kNotFound) {
        watched->objects.erase(uid);
      } else {
        log_.warn("caBundle", {{"object", what}, {"why", patched.error().message}});
        is_done = false;
      }
    }
  }
  co_return is_done;
}

// The Training Operator's ClusterRole allows updates, and no patches.
Task<Result<std::string>> CaInjector::inject(kube::Resource resource, kube::ObjectKey key,
                                             Json object, Json operations) {
  auto patched = co_await client_.json_patch(resource, key, std::move(operations));
  if (patched || patched.error().code != kube::ErrorCode::kForbidden) co_return patched;
  for (Json& webhook : object["webhooks"].as_array())
    webhook["clientConfig"].set("caBundle", kube::base64_encode(ca_pem_));
  co_return co_await client_.replace(std::move(resource), std::move(key), std::move(object));
}

std::vector<kube::PolicyRule> ca_injector_rules(const std::set<std::string>& names,
                                                bool has_mutating) {
  const std::vector<std::string> groups{"admissionregistration.k8s.io"};
  std::vector<std::string> resources{"validatingwebhookconfigurations"};
  if (has_mutating) resources.insert(resources.begin(), "mutatingwebhookconfigurations");
  return {{"The controller's CA in its own webhooks.", groups, resources, {}, {"list", "watch"}},
          {"", groups, resources, {names.begin(), names.end()}, {"patch"}}};
}

std::vector<WebhookConfiguration> WebhookRegistrar::configurations(std::string ca_pem) const {
  WebhookTarget target;
  target.url = url_;
  target.ca_pem = std::move(ca_pem);
  return webhook_configurations(webhooks_, target, username_);
}

Task<Result<void>> WebhookRegistrar::publish(std::string ca_pem) {
  const auto permit = co_await publishing_.acquire(kube::Semaphore::kNoDeadline);
  if (!permit) co_return tl::unexpected(permit.error());
  if (is_withdrawn_) co_return Result<void>();
  if (username_.empty()) {
    Json review = Json::object();
    review.set("apiVersion", "authentication.k8s.io/v1").set("kind", "SelfSubjectReview");
    auto answer = co_await client_.post("/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                        std::move(review));
    if (!answer) co_return tl::unexpected(answer.error().at("SelfSubjectReview"));
    username_ = answer->get_path({"status", "userInfo"}).get_string("username");
  }
  auto desired = configurations(std::move(ca_pem));
  is_published_ = true;
  for (WebhookConfiguration& configuration : desired) {
    if (is_withdrawn_) break;
    const std::string what = configuration.resource.kind + " " + configuration.key().name;
    kube::ObjectKey key = configuration.key();
    auto applied = co_await client_.apply(configuration.resource, std::move(key),
                                          std::move(configuration.object), kManager, true);
    if (!applied) co_return tl::unexpected(applied.error().at(what));
    log_.info("webhooks published", {{"object", what}, {"url", url_}});
  }
  co_return Result<void>();
}

std::string WebhookRegistrar::removal() const {
  std::string command = "kubectl delete";
  for (const WebhookConfiguration& each : configurations(""))
    command += " " + kube::to_lower(each.resource.kind) + "/" + each.key().name;
  return "start this process again, or TrainJobs stay refused until: " + command;
}

Task<void> WebhookRegistrar::withdraw() {
  is_withdrawn_ = true;
  const auto permit = co_await publishing_.acquire(kube::Semaphore::kNoDeadline);
  if (!permit || !is_published_) co_return;
  const auto published = configurations("");
  for (const WebhookConfiguration& configuration : published) {
    const std::string what = configuration.resource.kind + " " + configuration.key().name;
    kube::DeleteOptions options;
    kube::ObjectKey key = configuration.key();
    const auto removed =
        co_await client_.remove(configuration.resource, std::move(key), std::move(options));
    if (removed) {
      log_.info("webhooks removed", {{"object", what}});
    } else if (removed.error().code != kube::ErrorCode::kNotFound) {
      log_.error("webhooks not removed",
                 {{"object", what},
                  {"why", removed.error().message},
                  {"then", "delete the object by hand, or TrainJobs stay refused"}});
    }
  }
}

}  // namespace trainer
