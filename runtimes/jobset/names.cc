#include "runtimes/jobset/names.hh"

#include <fmt/format.h>

#include <charconv>

#include "kube/model/digest.hh"

namespace trainer::jobset {

std::string job_name(std::string_view jobset, std::string_view replicated_job, std::int64_t index) {
  return fmt::format("{}-{}-{}", jobset, replicated_job, index);
}

std::optional<std::int32_t> parse_count(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::int32_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || text.front() == '-') return std::nullopt;
  return value;
}

std::optional<JobPosition> parse_job_name(std::string_view jobset, std::string_view name) {
  if (name.size() <= jobset.size() || name.substr(0, jobset.size()) != jobset ||
      name[jobset.size()] != '-') {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(jobset.size() + 1);
  const std::size_t dash = rest.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto index = parse_count(rest.substr(dash + 1));
  if (!index) return std::nullopt;
  return JobPosition{rest.substr(0, dash), *index};
}

const std::string& subdomain(const JobSet& jobset) {
  const auto& network = jobset.spec.network;
  if (network && network->subdomain && !network->subdomain->empty()) return *network->subdomain;
  return jobset.metadata.name;
}

bool has_dns_hostnames(const JobSet& jobset) {
  return jobset.spec.network && jobset.spec.network->enableDNSHostnames.value_or(false);
}

std::string coordinator_endpoint(const JobSet& jobset) {
  const Coordinator& coordinator = *jobset.spec.coordinator;
  return fmt::format("{}-{}-{}-{}.{}", jobset.metadata.name, coordinator.replicatedJob,
                     coordinator.jobIndex, coordinator.podIndex, subdomain(jobset));
}

std::string job_key(std::string_view ns, std::string_view job) {
  return kube::sha1_hex(fmt::format("{}/{}", ns, job));
}

std::string claim_name(std::string_view claim_template, std::string_view jobset) {
  return fmt::format("{}-{}", claim_template, jobset);
}

kube::Json owner_reference(const JobSet& jobset) {
  const kube::OwnerReference owner{.api_version = std::string(kApiVersion),
                                   .kind = std::string(kKind),
                                   .name = jobset.metadata.name,
                                   .uid = jobset.metadata.uid,
                                   .controller = true,
                                   .block_owner_deletion = true};
  return owner.to_json();
}

}  // namespace trainer::jobset
