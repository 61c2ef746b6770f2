// These are the parts of validate_create, by subject, in the order in which they report, which is
// upstream's. Internal to runtimes/jobset; the rules are those of JobSet,
// pkg/webhooks/jobset_webhook.go.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "kube/model/name_index.hh"
#include "runtimes/jobset/admission.hh"

namespace trainer::jobset {

struct ValidatedJobSet {
  const JobSet& jobset;
  const Gates& gates;
  std::string name;  // the JobSet's, or one as long as the API server would generate
  kube::FieldErrors errors = {};

  // Adds an error about the whole object, in the form that clients see.
  template <class... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    errors.push_back({kube::FieldError::Type::kInternal, "<nil>", kube::Json(),
                      fmt::format(text, std::forward<Args>(args)...)});
  }
  template <class... Args>
  void invalid(std::string path, kube::Json value, fmt::format_string<Args...> detail,
               Args&&... args) {
    errors.push_back(kube::invalid(std::move(path), std::move(value),
                                   fmt::format(detail, std::forward<Args>(args)...)));
  }
  // A generated name must be a DNS-1035 label; too long ones are explained by `too_long`.
  void check_generated(const std::string& path, const std::string& value,
                       std::string_view too_long);
  // Does the same, but the error shows `value`, from which `generated` is made.
  void check_generated(const std::string& path, const std::string& value,
                       const std::string& generated, std::string_view too_long);
  const ReplicatedJob* find(std::string_view replicated_job) const;

  kube::NameIndex by_name{jobset.spec.replicatedJobs,
                          [](const ReplicatedJob& job) { return std::string_view(job.name); }};
};

void check_replicated_jobs(ValidatedJobSet& checked);
void check_failure_policy(ValidatedJobSet& checked);
void check_coordinator(ValidatedJobSet& checked);
void check_claims(ValidatedJobSet& checked, const FindClaim& find_claim);

}  // namespace trainer::jobset
