// A new JobSet is refused for these errors in its volume claim policies (JobSet,
// pkg/webhooks/jobset_webhook.go).
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/check_items.hh"
#include "kube/model/names.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/validation.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// This is one claim template and its path.
struct Claim {
  const Json& claim;
  std::string name;
  std::string policy_path;  // "spec.volumeClaimPolicies[0]"
  std::string
      template_path;     // "spec.volumeClaimPolicies[0].template[0]": the path that clients see
  bool is_kept = false;  // retained when the JobSet is deleted
};

// Returns whether no template before it has this name.
bool check_name(ValidatedJobSet& checked, const Claim& claim, std::set<std::string>& names) {
  const std::string path = kube::join_field(claim.template_path, "name");
  const bool is_first = names.insert(claim.name).second;
  if (!is_first) {
    checked.invalid(path, claim.name, "names must be unique for VolumeClaimPolicies template");
  }
  if (const std::string problem = kube::check_dns1123_subdomain(claim.name); !problem.empty()) {
    checked.invalid(path, claim.name, "{}", problem);
  }
  if (claim_name(claim.name, checked.name).size() > 63) {
    checked.invalid(path, claim.name, "VolumeClaimPolicies template name is too long");
  }
  return is_first;
}

// Further errors would help no one.
bool is_full(const ValidatedJobSet& checked) {
  return checked.errors.size() >= kube::kMaxErrors;
}

// The pods of all jobs have these volumes and mounts, by name.
struct Volumes {
  std::set<std::string_view> mounted;
  std::multimap<std::string_view, std::pair<std::size_t, std::size_t>> places;  // job, index

  explicit Volumes(const std::vector<ReplicatedJob>& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Json& pod_spec = pod_spec_of(jobs[i]);
      mounted.merge(mounted_volumes(pod_spec));
      const Json::Array& volumes = pod_spec.get_array("volumes");
      for (std::size_t v = 0; v < volumes.size(); ++v)
        places.emplace(volumes[v].get_string("name"), std::pair(i, v));
    }
  }
};

void check_volumes(ValidatedJobSet& checked, const Claim& claim, const Volumes& volumes) {
  const auto places = volumes.places.equal_range(claim.name);
  for (auto at = places.first; at != places.second && !is_full(checked); ++at) {
    const auto& [job, volume] = at->second;
    checked.invalid(
        fmt::format("spec.replicatedJobs[{}].template.spec.template.spec.volumes[{}].name", job,
                    volume),
        claim.name, "volume name conflicts with VolumeClaimPolicy template name: {}", claim.name);
  }
  if (volumes.mounted.contains(claim.name)) return;
  checked.invalid(
      "spec.replicatedJobs", claim.name,
      "replicatedJob containers don't have a matching volumeMount: {} from VolumeClaimPolicies",
      claim.name);
}

void check_existing(ValidatedJobSet& checked, const Claim& claim, const FindClaim& find_claim) {
  const std::string name = claim_name(claim.name, checked.name);
  const auto existing = find_claim ? find_claim(checked.jobset.metadata.ns, name) : std::nullopt;
  if (!existing) return;
  const Json& desired = claim.claim.get("spec");
  if (desired != existing->get("spec")) {
    checked.invalid(kube::join_field(claim.template_path, "spec"), desired,
                    "spec does not match existing PVC {} in namespace {}", name,
                    checked.jobset.metadata.ns);
  }
  if (!claim.is_kept) {
    checked.invalid(kube::join_field(claim.policy_path, "retentionPolicy.whenDeleted"), "Delete",
                    "retentionPolicy must be retain when PVC exists");
  }
}

}  // namespace

void check_claims(ValidatedJobSet& checked, const FindClaim& find_claim) {
  std::set<std::string> names;
  const auto& policies = checked.jobset.spec.volumeClaimPolicies;
  if (policies.empty()) return;
  const Volumes volumes(checked.jobset.spec.replicatedJobs);
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const auto& retention = policies[p].retentionPolicy;
    const bool is_kept = retention && retention->whenDeleted == "Retain";
    const std::string path = kube::join_index("spec.volumeClaimPolicies", p);
    for (std::size_t t = 0; t < policies[p].templates.size(); ++t) {
      if (is_full(checked)) return;
      const Json& claim_template = policies[p].templates[t];
      const Claim claim{claim_template,
                        std::string(claim_template.get("metadata").get_string("name")), path,
                        kube::join_index(kube::join_field(path, "template"), t), is_kept};
      // Volumes and claims of a name are compared once: each may have thousands.
      if (!check_name(checked, claim, names)) continue;
      check_volumes(checked, claim, volumes);
      check_existing(checked, claim, find_claim);
    }
  }
}

}  // namespace trainer::jobset
