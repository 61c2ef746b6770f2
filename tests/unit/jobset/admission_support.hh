// Building JobSets for admission, in YAML's flow style, and the refusals as text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "api/api.hh"
#include "kube/model/yaml.hh"
#include "runtimes/jobset/admission.hh"
#include "tests/support/catch.hh"

namespace trainer::jobset::test {

using kube::Json;

inline Json defaulted(std::string_view yaml) {
  auto parsed = kube::parse_yaml(yaml);
  INFO(yaml);
  INFO((parsed ? std::string() : parsed.error().message));
  REQUIRE(parsed.has_value());
  apply_schema_defaults(*parsed);
  apply_webhook_defaults(*parsed);
  return *parsed;
}

inline JobSet typed(const Json& object) {
  auto read = read_jobset(object);
  INFO((read ? std::string() : kube::to_string(read.error())));
  REQUIRE(read.has_value());
  return *read;
}

inline std::string create_errors(const Json& object, Gates gates = {},
                                 const FindClaim& find_claim = {}) {
  return kube::to_string(validate_create(typed(object), gates, find_claim));
}

inline std::string update_errors(const Json& before, const Json& after, Gates gates = {}) {
  return kube::to_string(validate_update(typed(before), typed(after), gates));
}

// One replicated job `w`; `spec` are further members of the JobSet's spec in flow style, `job` of
// the replicated job's.
inline std::string single(std::string_view spec = "", std::string_view job = "",
                          std::string_view metadata = "name: s") {
  return fmt::format(
      "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{{}, namespace: ns}}, "
      "spec: "
      "{{{}{}replicatedJobs: [{{name: w, replicas: 1, template: {{spec: {{template: {{spec: "
      "{{containers: []}}}}}}}}{}{}}}]}}}}",
      metadata, spec, spec.empty() ? "" : ", ", job.empty() ? "" : ", ", job);
}

// Several replicated jobs as they are.
inline std::string with_jobs(std::string_view jobs, std::string_view spec = "",
                             std::string_view metadata = "name: s") {
  return fmt::format(
      "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{{}, namespace: ns}}, "
      "spec: "
      "{{{}{}replicatedJobs: [{}]}}}}",
      metadata, spec, spec.empty() ? "" : ", ", jobs);
}

inline const std::string kT = "template: {spec: {template: {spec: {containers: []}}}}";

inline std::string plain(std::string_view text) {
  return fmt::format("<nil>: Internal error: {}", text);
}

}  // namespace trainer::jobset::test
