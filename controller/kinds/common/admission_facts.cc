#include "controller/kinds/common/admission_facts.hh"

#include "kube/model/resources.hh"
#include "runtimes/plugins/registry.hh"

namespace trainer {
namespace {

using kube::ObjectKey;
using kube::Result;
using kube::Task;

// A review may name thousands of claims, and each would be a request. Real objects have a few.
// Claims beyond this number are not checked for whether they exist already.
constexpr std::size_t kMaxLookups = 20;

Task<Result<AdmissionFacts::Object>> read_runtime(AdmissionReader& reader, std::string kind,
                                                  ObjectKey key) {
  for (const kube::Resource& resource : {kTrainingRuntimes, kClusterTrainingRuntimes}) {
    if (kind == resource.kind) co_return co_await reader.read_cached(resource, std::move(key));
  }
  co_return AdmissionFacts::Object();
}

Task<Result<void>> read_others(AdmissionReader& reader, const AdmissionNeeds& needs,
                               AdmissionFacts& facts) {
  std::size_t left = kMaxLookups;
  for (const ObjectKey& key : needs.claims) {
    if (left-- == 0) break;
    const auto claim = co_await reader.read(kube::kPersistentVolumeClaims, key);
    if (!claim) co_return tl::unexpected(claim.error());
    if (*claim) facts.claims.emplace(key, **claim);
  }
  for (const std::string& name : needs.priority_classes) {
    ObjectKey key;
    key.name = name;
    const auto found = co_await reader.read(kube::kPriorityClasses, std::move(key));
    if (!found) co_return tl::unexpected(found.error());
    if (*found) facts.priority_classes.insert(name);
  }
  co_return Result<void>();
}

}  // namespace

AdmissionLookups AdmissionFacts::lookups() const {
  AdmissionLookups lookups;
  lookups.runtime = [this](const std::string& kind, const std::string& ns,
                           const std::string& name) -> Object {
    const auto at =
        runtimes.find({kind, ObjectKey{kind == kTrainingRuntimes.kind ? ns : std::string(), name}});
    return at == runtimes.end() ? nullptr : at->second;
  };
  lookups.jobset = [this](const std::string&, const std::string&) { return jobset; };
  lookups.snapshot = [this](const std::string&, const std::string&) { return snapshot; };
  lookups.priority_class_exists = [this](const std::string& name) {
    return priority_classes.contains(name);
  };
  lookups.claim = [this](const std::string& ns,
                         const std::string& name) -> std::optional<kube::Json> {
    const auto at = claims.find(ObjectKey{ns, name});
    return at == claims.end() ? std::nullopt : std::optional<kube::Json>(at->second);
  };
  return lookups;
}

Task<Result<AdmissionFacts>> read_facts(AdmissionReader& reader, const AdmissionRequest& request) {
  AdmissionFacts facts;
  AdmissionNeeds needs = needs_of(request, production_plugins());
  if (needs.runtime) {
    const auto named = *needs.runtime;
    auto runtime = co_await read_runtime(reader, named.first, named.second);
    if (!runtime) co_return tl::unexpected(runtime.error());
    if (*runtime) {
      needs = needs_of(request, production_plugins(), runtime->get());
      facts.runtimes.emplace(named, std::move(*runtime));
    } else if (named.first == kClusterTrainingRuntimes.kind) {
      // The refusal says more if the namespace has a runtime of this name.
      const ObjectKey own{request.ns, named.second.name};
      auto other = co_await read_runtime(reader, kTrainingRuntimes.kind, own);
      if (other && *other)
        facts.runtimes.emplace(std::pair(kTrainingRuntimes.kind, own), std::move(*other));
    }
  }
  const auto others = co_await read_others(reader, needs, facts);
  if (!others) co_return tl::unexpected(others.error());
  co_return facts;
}

}  // namespace trainer
