// These names are in the created objects; documents set one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "tests/unit/fate/fields.hh"

namespace trainer::fate {

// A name in a pod template, or in its metadata.
struct Name {
  std::string job;        // the replicated job, or the role of a V1 job; "" for the JobSet itself
  std::string level;      // the level of labels and annotations: "JobSet", "Job" or "Pod"
  std::string list;       // the list of a container: "containers" or "initContainers"
  std::string container;  // "" for parts of the pod
  std::string member;     // "env", "volumeMounts", "volumes", "labels", "annotations", "container"
  std::string key;

  friend auto operator<=>(const Name&, const Name&) = default;
  std::string to_string() const;
};

// Those of a JobSet's metadata, of a Job and its pods, and of a pod.
void add_names_of_jobset(const kube::Json& jobset, std::vector<Name>& names);
void add_names_of_job(const kube::Json& job, std::vector<Name>& names);
void add_names_of_pod(const kube::Json& pod, std::string_view role, std::vector<Name>& names);

// Sets the name to a marker in a pod template, or in an object with metadata if the name is of
// labels and annotations. Returns the path below it. A missing container is added.
std::string set_name(kube::Json& owner, const Name& name, std::string_view marker, Values& values);

}  // namespace trainer::fate
