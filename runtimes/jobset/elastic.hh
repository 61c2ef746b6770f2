// The number of nodes of some JobSets may change while they run (docs/users/elastic.md). This is an
// extension: the gate ElasticJobSet allows it for all JobSets, the annotation for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/jobset.hh"
#include "runtimes/jobset/gates.hh"

namespace trainer::jobset {

struct ElasticNodes {
  std::int32_t least = 1;
  std::int32_t most = 1;
};

// Returns what the annotation kElasticNodesKey of a JobSet says, which a TrainJob controls; nullopt
// for any other JobSet, and for a text that is not "MIN:MAX".
std::optional<ElasticNodes> elastic_nodes(const JobSet& jobset);

// Returns the index of the replicated job whose pods these nodes are.
std::optional<std::size_t> elastic_job(const JobSet& jobset);

// Returns whether the Jobs of the replicated job at this index may get so many pods.
bool may_resize(const JobSet& jobset, std::size_t job, std::optional<std::int64_t> nodes,
                const Gates& gates);

}  // namespace trainer::jobset
