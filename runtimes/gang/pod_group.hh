// This program knows the PodGroups of these gang schedulers. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"

namespace trainer::gang {

// With Volcano, pods name their group in this annotation.
inline constexpr std::string_view kVolcanoAnnotation = "scheduling.k8s.io/group-name";
inline const kube::Resource kVolcanoPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups",
                                              "PodGroup"};
// With the coscheduling plugin of kubernetes-sigs/scheduler-plugins, pods name their group in this
// label.
inline constexpr std::string_view kCoschedulingLabel = "scheduling.x-k8s.io/pod-group";
inline const kube::Resource kCoschedulingPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                                   "PodGroup"};

// Writes a ResourceList as JSON, its amounts in canonical form.
kube::Json write_resources(const kube::ResourceList& resources);

}  // namespace trainer::gang
