// The number of nodes may change while torchrun runs (docs/users/elastic.md). An extension.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/field_error.hh"
#include "runtimes/jobset/elastic.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// This is what elasticPolicy of a runtime allows.
struct ElasticPolicy {
  jobset::ElasticNodes nodes;
  std::int32_t restarts = 3;  // torchrun of each node starts its processes again so often

  std::string range() const;  // "2:4", as torchrun writes it
};

// Returns nullopt for a runtime whose jobs keep their number of nodes.
std::optional<ElasticPolicy> elastic_policy_of(const TorchPolicy& policy);

// Makes the job at `index` elastic: its Job replaces single pods and ends with index 0, and the
// controller of JobSets lets its size change.
void make_elastic(Draft& draft, std::size_t index, const ElasticPolicy& policy,
                  std::string_view source);

// Refuses a job whose number of nodes lies outside the bounds, or whose launcher or queue keeps it
// from changing.
void check_elastic(const Draft& draft, const TorchPolicy& policy, kube::FieldErrors& errors);

}  // namespace trainer::pipeline
