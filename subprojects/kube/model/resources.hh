// Kubernetes' own collections are each named once, here.
#pragma once

#include "kube/model/meta.hh"

namespace kube {

inline const Resource kPods{"", "v1", "pods", "Pod", true};
inline const Resource kNodes{"", "v1", "nodes", "Node", false};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kServices{"", "v1", "services", "Service", true};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline const Resource kEvents{"", "v1", "events", "Event", true};
inline const Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims",
                                              "PersistentVolumeClaim", true};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
inline const Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role", true};
inline const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings",
                                    "RoleBinding", true};
inline const Resource kHorizontalPodAutoscalers{"autoscaling", "v2", "horizontalpodautoscalers",
                                                "HorizontalPodAutoscaler", true};
inline const Resource kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
inline const Resource kJobs{"batch", "v1", "jobs", "Job", true};
inline const Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses",
                                       "PriorityClass", false};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline const Resource kMutatingWebhookConfigurations{"admissionregistration.k8s.io", "v1",
                                                     "mutatingwebhookconfigurations",
                                                     "MutatingWebhookConfiguration", false};
inline const Resource kValidatingWebhookConfigurations{"admissionregistration.k8s.io", "v1",
                                                       "validatingwebhookconfigurations",
                                                       "ValidatingWebhookConfiguration", false};

}  // namespace kube
