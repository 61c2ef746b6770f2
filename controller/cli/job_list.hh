// The jobs of all kinds, as `trainer get` and `trainer ui` read them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Returns whether the kind's objects are jobs.
bool is_job_kind(const KindRegistration& kind);

// Returns "namespace NAME", or "all namespaces" for "".
std::string scope_of(const std::string& ns);

// Returns the owner reference of a job that is a part of another job of these kinds; nullptr if it
// is none. The result is a part of `meta`.
const kube::OwnerReference* owner_among_jobs(const Registry& registry,
                                             const kube::ObjectMeta& meta);

// A resource with several versions is listed at each of them. Returns whether the object belongs to
// this kind, and not to one of another version.
bool is_of_version(const Registry& registry, const KindRegistration& kind,
                   const kube::Json& object);

// This could be read.
struct JobsRead {
  std::vector<const KindRegistration*>
      kinds;                           // those that the cluster serves and the user may list
  std::vector<std::string> notes;      // sentences about what could not be read
  std::optional<kube::Error> failure;  // the API server did not answer as it should
};
using OnJob = std::function<void(const KindRegistration& kind, const kube::Json& object)>;
// Lists the jobs of all kinds, each at the version to which it belongs; at most this many pages of
// each kind. `ns` is empty for all namespaces.
kube::Task<JobsRead> read_jobs(kube::ApiClient& client, const Registry& registry, std::string ns,
                               std::size_t max_pages, OnJob on_job);

}  // namespace trainer
