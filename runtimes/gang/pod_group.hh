// The PodGroups of the gang schedulers that this program knows. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"

namespace trainer::gang {

// Volcano: pods name their group in an annotation.
inline constexpr std::string_view kVolcanoAnnotation = "scheduling.k8s.io/group-name";
inline const kube::Resource kVolcanoPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups",
                                              "PodGroup"};
// The coscheduling plugin of kubernetes-sigs/scheduler-plugins: in a label.
inline constexpr std::string_view kCoschedulingLabel = "scheduling.x-k8s.io/pod-group";
inline const kube::Resource kCoschedulingPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                                   "PodGroup"};

// A ResourceList as JSON, its amounts in canonical form.
kube::Json write_resources(const kube::ResourceList& resources);

}  // namespace trainer::gang
