#include "tests/simulation/api_store.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "api/schema/kubernetes_types.hh"
#include "kube/client/api_client.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/server/deletion.hh"
#include "runtimes/jobset/admission.hh"

namespace trainer::simulation {
namespace {

using kube::FieldErrors;
using kube::Json;
using kube::ObjectKey;
using kube::ObjectMeta;
using kube::Resource;
using kube::server::ServedKind;

constexpr std::int64_t kFirstVersion = 100;

bool is_spec_equal(const Json& a, const Json& b) {
  return a.get("spec") == b.get("spec");
}

// In a Job only `suspend` changes while it runs or has run since it was suspended.
FieldErrors check_job(const Json& job, const Json* before) {
  if (before == nullptr || is_spec_equal(job, *before)) return {};
  const Json& old_spec = before->get("spec");
  if (old_spec.get("template") == job.get("spec").get("template")) return {};
  const bool has_started = before->get("status").find("startTime") != nullptr;
  if (old_spec.get_bool("suspend") && !has_started) return {};
  return {kube::invalid("spec.template", Json(), std::string("field is immutable"))};
}

FieldErrors check_jobset(const Json& jobset, const Json* before) {
  if (before == nullptr || is_spec_equal(jobset, *before)) return {};
  const auto old_jobset = read_jobset(*before);
  const auto new_jobset = read_jobset(jobset);
  if (!old_jobset || !new_jobset)
    return {kube::invalid("spec", Json(), std::string("it is no JobSet"))};
  return jobset::validate_update(*old_jobset, *new_jobset, {});
}

ServedKind kind(const Resource& resource, bool has_status) {
  ServedKind served;
  served.resource = resource;
  served.has_status = has_status;
  return served;
}

// Returns the kind of a CustomResourceDefinition of this project.
ServedKind custom(const Resource& resource, bool has_status) {
  ServedKind served = kind(resource, has_status);
  const wire::Schema* schema = find_schema(resource.kind);
  served.schema = std::shared_ptr<const Json>(std::shared_ptr<const Json>(), &schema->document);
  served.target_of = [](const Json& part) { return KubernetesTypes::instance().target_of(part); };
  served.set_defaults = [](Json& object) { apply_schema_defaults(object); };
  return served;
}

kube::server::ServedKinds make_kinds() {
  ServedKind jobsets = custom(kJobSets, true);
  jobsets.check = check_jobset;
  ServedKind jobs = kind(kube::kJobs, true);
  jobs.check = check_job;
  ServedKind pods = kind(kube::kPods, true);
  pods.set_defaults = [](Json& pod) {
    Json& spec = pod["spec"];
    if (!spec.find("terminationGracePeriodSeconds")) spec.set("terminationGracePeriodSeconds", 30);
  };
  return {custom(kTrainJobs, true),
          custom(kTrainingRuntimes, false),
          custom(kClusterTrainingRuntimes, false),
          std::move(jobsets),
          std::move(jobs),
          std::move(pods),
          kind(kube::kServices, true),
          kind(kube::kConfigMaps, false),
          kind(kube::kPersistentVolumeClaims, true),
          kind(kube::kEvents, false)};
}

kube::server::Request request_for(std::string_view method, const Resource& resource,
                                  const ObjectKey& key, std::string_view subresource,
                                  const Json& body) {
  kube::server::Request request;
  request.method = method;
  request.target = kube::api_path(resource, key, subresource);
  request.content_type = method == "PATCH" ? "application/merge-patch+json" : "application/json";
  request.body = kube::print_json(body);
  return request;
}

}  // namespace

std::string_view name_of(Actor actor) {
  switch (actor) {
    case Actor::kController:
      return "controller";
    case Actor::kCluster:
      return "cluster";
    case Actor::kUser:
      return "user";
  }
  return "";
}

ApiStore::ApiStore(const Timeline& timeline)
    : kinds_(make_kinds()),
      objects_(kFirstVersion),
      api_(kinds_, objects_,
           {.now = [&timeline] { return timeline.now(); },
            .new_uid = [this] { return fmt::format("uid-{:04}", ++made_); },
            .new_name_suffix = [this] { return fmt::format("{:05}", ++made_); }}) {
  objects_.subscribe([this](const kube::server::Change& stored) {
    const Change change{actor_, *stored.resource, stored.key, stored.before, stored.after, stored};
    for (const Observer& observer : observers_) observer(change);
  });
}

const ServedKind& ApiStore::kind_of(std::string_view plural) const {
  return *std::find_if(kinds_.begin(), kinds_.end(), [plural](const ServedKind& served) {
    return served.resource.plural == plural;
  });
}

const Resource* ApiStore::find_kind(std::string_view plural) const {
  for (const ServedKind& served : kinds_)
    if (served.resource.plural == plural) return &served.resource;
  return nullptr;
}

const ApiStore::Collection& ApiStore::all(std::string_view plural) const {
  return objects_.all(*find_kind(plural));
}

Object ApiStore::find(std::string_view plural, const ObjectKey& key) const {
  return objects_.find(*find_kind(plural), key);
}

kube::server::Outcome ApiStore::handle(Actor actor, kube::server::Request request) {
  actor_ = actor;
  request.user_agent = name_of(actor);
  kube::server::Outcome outcome = api_.begin(std::move(request));
  while (auto* pending = std::get_if<kube::server::PendingWrite>(&outcome)) {
    kube::server::PendingWrite write = std::move(*pending);
    const bool is_new_jobset =
        write.operation == "CREATE" && write.kind->resource.kind == kJobSets.kind;
    if (is_new_jobset) jobset::apply_webhook_defaults(write.object);
    outcome = api_.finish(std::move(write));
  }
  actor_ = Actor::kCluster;
  return outcome;
}

Answer ApiStore::send(Actor actor, kube::server::Request request) {
  const kube::server::Outcome outcome = handle(actor, std::move(request));
  const auto& response = std::get<kube::server::Response>(outcome);
  return {response.status, kube::parse_json(response.body).value_or(Json())};
}

Answer ApiStore::create(Actor actor, const Resource& resource, Json object) {
  const ObjectKey collection{ObjectMeta::of(object).ns, ""};
  return send(actor, request_for("POST", resource, collection, "", object));
}

Answer ApiStore::merge(Actor actor, const Resource& resource, const ObjectKey& key,
                       const Json& patch, std::string_view subresource) {
  return send(actor, request_for("PATCH", resource, key, subresource, patch));
}

Answer ApiStore::remove(Actor actor, const Resource& resource, const ObjectKey& key,
                        const Json& options) {
  return send(actor, request_for("DELETE", resource, key, "", options));
}

void ApiStore::replace(std::string_view plural, Json object) {
  const ServedKind& served = kind_of(plural);
  const ObjectKey key = ObjectMeta::of(object).key();
  const Object before = find(plural, key);
  if (!before) return;
  if (before->get("spec") != object.get("spec")) {
    Json& metadata = object["metadata"];
    metadata.set("generation", metadata.get_int("generation") + 1);
  }
  if (kube::server::is_removable(served, object)) {
    objects_.erase(served.resource, key);
  } else {
    objects_.put(served.resource, std::move(object));
  }
}

void ApiStore::erase(Actor actor, std::string_view plural, const ObjectKey& key) {
  actor_ = actor;
  objects_.erase(*find_kind(plural), key);
  actor_ = Actor::kCluster;
}

}  // namespace trainer::simulation
