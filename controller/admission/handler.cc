#include "controller/admission/handler.hh"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "controller/admission/webhooks.hh"
#include "controller/core/stores.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/snapshot.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

namespace {

constexpr std::size_t kRuntimesKept = 16;

// Anybody who reaches the port may send a review: without a bound its 7 MB could become 300. What
// etcd takes has fewer values, twice in a review.
constexpr kube::JsonLimits kReviewLimits{.max_values = 300'000};

using ObjectPointer = std::shared_ptr<const Json>;

// Nobody judges managedFields, which are a large part of most objects.
kube::JsonFilter read_of_reviews() {
  using enum kube::JsonFilter::Members;
  const std::vector<kube::JsonFilter> metadata{
      {"metadata", kExclude, {{"managedFields", kExclude, {}}}}};
  return {
      "",
      kExclude,
      {{"request", kExclude, {{"object", kExclude, metadata}, {"oldObject", kExclude, metadata}}}}};
}

kube::ServerResponse plain(int status, std::string text) {
  kube::ServerResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

bool is_known(std::string_view path) {
  for (const std::string_view known :
       {kMutateTrainJob, kMutateRuntime, kMutateClusterRuntime, kValidateTrainJob, kValidateRuntime,
        kValidateClusterRuntime, kMutateJobSet, kValidateJobSet, kMutatePod, kValidatePod}) {
    if (path == known) return true;
  }
  return false;
}

bool changes_patches(const AdmissionRequest& request) {
  const Json* before = request.old_object.find_path({"spec", "runtimePatches"});
  const Json* after = request.object.find_path({"spec", "runtimePatches"});
  const bool is_empty =
      (before == nullptr || before->empty()) && (after == nullptr || after->empty());
  return !is_empty && (before == nullptr || after == nullptr || *before != *after);
}

AdmissionAnswer failed_lookup(const kube::Error& error) {
  AdmissionAnswer answer;
  answer.is_allowed = false;
  answer.code = 500;
  answer.reason = "InternalError";
  answer.message = error.message + ": the request could not be judged, try again";
  return answer;
}

}  // namespace

// What the rules will ask for, read before they are asked.
struct AdmissionHandler::Facts {
  std::map<std::pair<std::string, ObjectKey>, ObjectPointer> runtimes;  // by kind and key
  ObjectPointer jobset;
  std::shared_ptr<const std::string> snapshot;
  std::map<ObjectKey, Json> claims;
  std::set<std::string> priority_classes;

  AdmissionLookups lookups() const {
    AdmissionLookups lookups;
    lookups.runtime = [this](const std::string& kind, const std::string& ns,
                             const std::string& name) -> ObjectPointer {
      const auto at = runtimes.find(
          {kind, ObjectKey{kind == kTrainingRuntimes.kind ? ns : std::string(), name}});
      return at == runtimes.end() ? nullptr : at->second;
    };
    lookups.jobset = [this](const std::string&, const std::string&) { return jobset; };
    lookups.snapshot = [this](const std::string&, const std::string&) { return snapshot; };
    lookups.priority_class_exists = [this](const std::string& name) {
      return priority_classes.contains(name);
    };
    lookups.claim = [this](const std::string& ns, const std::string& name) -> std::optional<Json> {
      const auto at = claims.find(ObjectKey{ns, name});
      return at == claims.end() ? std::nullopt : std::optional<Json>(at->second);
    };
    return lookups;
  }
};

AdmissionHandler::AdmissionHandler(kube::ApiClient& client, const AdmissionState& state,
                                   jobset::Gates gates, const Log& log, OnReview on_review)
    : client_(client),
      pods_(client),
      state_(state),
      gates_(gates),
      log_(log),
      on_review_(std::move(on_review)),
      runtimes_([](ObjectPointer object) { return object; }, kRuntimesKept) {}

Task<kube::ServerResponse> AdmissionHandler::handle(kube::ServerRequest request) {
  const auto begin = client_.clock().steady();
  if (!is_known(request.path)) co_return plain(404, "there is no webhook of this path");
  if (request.method != "POST") co_return plain(405, "an AdmissionReview is sent with POST");
  static const kube::JsonFilter kRead = read_of_reviews();
  auto review = kube::parse_json(request.body, kReviewLimits, kRead);
  if (!review) co_return plain(400, "not a JSON document: " + review.error().message);
  auto read = read_admission_review(*review);
  if (!read) co_return plain(400, "not an AdmissionReview of admission.k8s.io/v1 with a request");

  // While lookups are waited for, nothing is held twice: of the review the answer needs this alone.
  request.body = std::string();
  const std::string uid(review->find("request")->get_string("uid"));
  *review = Json::object({{"request", Json::object({{"uid", uid}})}});

  const ObjectKey key{read->ns, read->name};
  const std::string kind = read->kind;
  const AdmissionAnswer evaluated = co_await answer(request.path, std::move(*read));
  if (!evaluated.is_allowed) {
    log_.info("admission refused",
              {{"kind", kind}, {"object", key.to_string()}, {"why", evaluated.message}});
  }
  if (on_review_) {
    const std::string_view outcome = evaluated.is_allowed    ? "allowed"
                                     : evaluated.code >= 500 ? "error"
                                                             : "denied";
    on_review_(request.path, outcome, client_.clock().steady() - begin);
  }
  kube::ServerResponse response;
  response.body = kube::print_json(admission_review_response(*review, evaluated));
  co_return response;
}

Task<AdmissionAnswer> AdmissionHandler::answer(std::string path, AdmissionRequest request) {
  if (path == kMutateTrainJob) co_return mutate_trainjob(request, client_.clock().now());
  if (path == kMutateRuntime || path == kMutateClusterRuntime) co_return mutate_runtime(request);
  if (path == kValidateRuntime || path == kValidateClusterRuntime)
    co_return validate_runtime(request);
  const bool is_pod = path == kMutatePod || path == kValidatePod;
  const bool is_jobset = path == kMutateJobSet || path == kValidateJobSet;
  if ((is_jobset || is_pod) && !state_.validates_jobsets()) co_return AdmissionAnswer();
  if (is_pod) co_return co_await answer_pod(std::move(path), std::move(request));
  if (path == kMutateJobSet) co_return mutate_jobset(request);

  const auto facts = co_await gather(path, request);
  if (!facts) co_return failed_lookup(facts.error());
  if (is_jobset) co_return validate_jobset(request, facts->lookups(), gates_);
  co_return validate_trainjob(request, facts->lookups(), production_plugins(), gates_);
}

Task<AdmissionAnswer> AdmissionHandler::answer_pod(std::string path, AdmissionRequest request) {
  auto evaluated = path == kMutatePod ? co_await pods_.mutate(std::move(request))
                                      : co_await pods_.validate(std::move(request));
  co_return evaluated ? std::move(*evaluated) : failed_lookup(evaluated.error());
}

// The object, or nullptr when there is none.
Task<Result<ObjectPointer>> AdmissionHandler::read(kube::Resource resource, ObjectKey key) {
  const std::string what = resource.kind + " " + key.to_string();
  auto got = co_await client_.get(std::move(resource), std::move(key));
  if (got) co_return std::make_shared<const Json>(std::move(*got));
  if (got.error().code == kube::ErrorCode::kNotFound) co_return ObjectPointer();
  co_return tl::unexpected(got.error().at(what));
}

Task<Result<ObjectPointer>> AdmissionHandler::read_runtime(std::string kind, ObjectKey key) {
  const bool is_cluster_wide = kind == kClusterTrainingRuntimes.kind;
  if (!is_cluster_wide && kind != kTrainingRuntimes.kind) co_return ObjectPointer();
  const auto view = state_.view();
  const auto& known = is_cluster_wide ? view->cluster_runtimes : view->training_runtimes;
  if (const auto at = known.find(key); at != known.end()) {
    co_return *runtimes_.of(at->second);
  }
  kube::Resource resource = is_cluster_wide ? kClusterTrainingRuntimes : kTrainingRuntimes;
  co_return co_await read(std::move(resource), std::move(key));
}

// What an update of a job is judged by besides: its snapshot, and whether its pods still run.
Task<Result<void>> AdmissionHandler::gather_state_of_job(const AdmissionRequest& request,
                                                         Facts& facts) {
  const auto meta = kube::ObjectMeta::of(request.old_object);
  ObjectKey snapshot_key = meta.key();
  snapshot_key.name = snapshot_name(meta.name);
  const auto snapshot = co_await read(kube::kConfigMaps, std::move(snapshot_key));
  if (!snapshot) co_return tl::unexpected(snapshot.error());
  if (*snapshot) {
    const auto snapshot_meta = kube::ObjectMeta::of(**snapshot);
    const kube::OwnerReference* owner = snapshot_meta.controller();
    const Json* text = (*snapshot)->find_path({"data", "runtime"});
    // A text that is not the one the job was started with says nothing.
    const Json* status = request.old_object.find("status");
    const std::string_view hash =
        status == nullptr ? "" : status->get_string("runtimeSnapshotHash");
    if (owner != nullptr && owner->uid == meta.uid && text != nullptr && text->is_string() &&
        (hash.empty() || hash == kube::sha256_hex(text->as_string()))) {
      facts.snapshot = std::make_shared<const std::string>(text->as_string());
    }
  }
  if (changes_patches(request)) {
    auto jobset = co_await read(kJobSets, meta.key());
    if (!jobset) co_return tl::unexpected(jobset.error());
    facts.jobset = std::move(*jobset);
  }
  co_return Result<void>();
}

Task<Result<AdmissionHandler::Facts>> AdmissionHandler::gather(std::string path,
                                                               const AdmissionRequest& request) {
  Facts facts;
  AdmissionNeeds needs = needs_of(request);
  if (needs.runtime) {
    const auto named = *needs.runtime;
    auto runtime = co_await read_runtime(named.first, named.second);
    if (!runtime) co_return tl::unexpected(runtime.error());
    if (*runtime) {
      needs = needs_of(request, runtime->get());
      facts.runtimes.emplace(named, std::move(*runtime));
    }
  }
  if (path == kValidateTrainJob && request.operation == "UPDATE") {
    const auto gathered = co_await gather_state_of_job(request, facts);
    if (!gathered) co_return tl::unexpected(gathered.error());
  }
  for (const ObjectKey& key : needs.claims) {
    const auto claim = co_await read(kube::kPersistentVolumeClaims, key);
    if (!claim) co_return tl::unexpected(claim.error());
    if (*claim) facts.claims.emplace(key, **claim);
  }
  for (const std::string& name : needs.priority_classes) {
    ObjectKey key;
    key.name = name;
    const auto found = co_await read(kube::kPriorityClasses, std::move(key));
    if (!found) co_return tl::unexpected(found.error());
    if (*found) facts.priority_classes.insert(name);
  }
  co_return facts;
}

}  // namespace trainer
