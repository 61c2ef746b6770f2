// `spec.runtimePatches[].trainingRuntimeSpec` has this shape. Patches stay Json, so these structs
// are never filled: only their schema is used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/describe/attributes.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct ContainerPatch {
  std::string name;
  std::vector<kube::Json> env;
  std::vector<kube::Json> volumeMounts;
  std::optional<kube::Json> securityContext;

  template <class D>
  static void describe(D& d) {
    d.required("name", &ContainerPatch::name)
        .min_length(1)
        .max_length(253)
        .doc("The container to change.");
    d.field("env", &ContainerPatch::env)
        .kubernetes("EnvVar")
        .list_map("name")
        .max_items(128)
        .doc("Environment variables to add or change.");
    // The list is merged by mountPath, yet keyed by name, since upstream's schema is: two mounts of
    // one volume cannot be added here.
    d.field("volumeMounts", &ContainerPatch::volumeMounts)
        .kubernetes("VolumeMount")
        .list_map("name")
        .max_items(128)
        .doc("Mounts to add or change, by the volume's name.");
    d.field("securityContext", &ContainerPatch::securityContext)
        .kubernetes("SecurityContext")
        .doc("Merged into that of the container.");
  }
};

struct PodSpecPatch {
  std::optional<std::string> serviceAccountName;
  std::vector<kube::Json> volumes;
  std::vector<ContainerPatch> initContainers;
  std::vector<ContainerPatch> containers;
  std::vector<kube::Json> imagePullSecrets;
  std::optional<kube::Json> securityContext;
  kube::StringMap nodeSelector;
  std::optional<kube::Json> affinity;
  std::vector<kube::Json> tolerations;
  std::vector<kube::Json> schedulingGates;
  std::optional<std::int64_t> terminationGracePeriodSeconds;

  template <class D>
  static void describe(D& d) {
    using P = PodSpecPatch;
    constexpr std::string_view kImmutable = "field is immutable";
    d.field("serviceAccountName", &P::serviceAccountName)
        .max_length(253)
        .immutable(kImmutable)
        .doc("The ServiceAccount of the pods.");
    d.field("volumes", &P::volumes)
        .kubernetes("Volume")
        .list_map("name")
        .max_items(128)
        .immutable(kImmutable)
        .doc("Volumes to add or change.");
    d.field("initContainers", &P::initContainers)
        .list_map("name")
        .max_items(64)
        .immutable(kImmutable)
        .doc("Init containers to change.");
    d.field("containers", &P::containers)
        .list_map("name")
        .max_items(64)
        .immutable(kImmutable)
        .doc("Containers to change.");
    d.field("imagePullSecrets", &P::imagePullSecrets)
        .kubernetes("LocalObjectReference")
        .list_map("name")
        .max_items(64)
        .immutable(kImmutable)
        .doc("Secrets with which images are pulled, to add.");
    d.field("securityContext", &P::securityContext)
        .kubernetes("PodSecurityContext")
        .immutable(kImmutable)
        .doc("Merged into that of the pods.");
    d.field("nodeSelector", &P::nodeSelector)
        .doc("Labels that a node must have, to add or change.");
    d.field("affinity", &P::affinity)
        .kubernetes("Affinity")
        .doc("Where pods may be placed; merged into the runtime's.");
    d.field("tolerations", &P::tolerations)
        .kubernetes("Toleration")
        .list_atomic()
        .max_items(128)
        .doc("Taints of nodes that the pods accept.");
    d.field("schedulingGates", &P::schedulingGates)
        .kubernetes("PodSchedulingGate")
        .list_map("name")
        .max_items(16)
        .doc("The pods are not placed before these gates are removed.");
    d.field("terminationGracePeriodSeconds", &P::terminationGracePeriodSeconds)
        .minimum(0)
        .immutable(kImmutable)
        .doc("How long containers may take to end before they are killed.");
  }
};

// Templates at every level have the form {metadata, spec}.
template <class Spec>
struct TemplatePatch {
  std::optional<kube::Json> metadata;
  std::optional<Spec> spec;

  template <class D>
  static void describe(D& d) {
    d.field("metadata", &TemplatePatch::metadata)
        .kubernetes("ObjectMeta")
        .doc("Labels and annotations to add.");
    d.field("spec", &TemplatePatch::spec).doc("Merged into the spec of the template.");
  }
};

using PodTemplatePatch = TemplatePatch<PodSpecPatch>;

struct JobSpecPatch {
  std::optional<PodTemplatePatch> template_;
  template <class D>
  static void describe(D& d) {
    d.field("template", &JobSpecPatch::template_).doc("Changes to the pods.");
  }
};

using JobTemplatePatch = TemplatePatch<JobSpecPatch>;

struct ReplicatedJobPatch {
  std::string name;
  std::optional<JobTemplatePatch> template_;
  template <class D>
  static void describe(D& d) {
    d.required("name", &ReplicatedJobPatch::name)
        .min_length(1)
        .max_length(253)
        .doc("The replicated job to change.");
    d.field("template", &ReplicatedJobPatch::template_).doc("Changes to its Jobs.");
  }
};

struct JobSetSpecPatch {
  std::vector<ReplicatedJobPatch> replicatedJobs;
  template <class D>
  static void describe(D& d) {
    d.field("replicatedJobs", &JobSetSpecPatch::replicatedJobs)
        .list_map("name")
        .max_items(100)
        .doc("Changes to replicated jobs.");
  }
};

using JobSetTemplatePatch = TemplatePatch<JobSetSpecPatch>;

struct RuntimeSpecPatch {
  std::optional<JobSetTemplatePatch> template_;
  template <class D>
  static void describe(D& d) {
    d.field("template", &RuntimeSpecPatch::template_).doc("Changes to the JobSet.");
  }
};

}  // namespace trainer
