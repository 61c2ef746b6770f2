// The names of metav1.ObjectMeta's fields. Schemas of custom resources do not have them: the API
// server knows them itself.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace kube {

constexpr bool is_object_meta_field(std::string_view name) {
  constexpr std::array<std::string_view, 15> kNames = {"annotations",
                                                       "creationTimestamp",
                                                       "deletionGracePeriodSeconds",
                                                       "deletionTimestamp",
                                                       "finalizers",
                                                       "generateName",
                                                       "generation",
                                                       "labels",
                                                       "managedFields",
                                                       "name",
                                                       "namespace",
                                                       "ownerReferences",
                                                       "resourceVersion",
                                                       "selfLink",
                                                       "uid"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace kube
