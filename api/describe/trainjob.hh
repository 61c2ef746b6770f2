// This is the wire form and the schema of TrainJob. Include it only where a visitor is
// instantiated.
#pragma once

#include "api/describe/attributes.hh"
#include "api/describe/elastic_rules.hh"
#include "api/describe/run_policy.hh"
#include "api/describe/runtime_patch.hh"
#include "api/describe/trainjob_status.hh"
#include "api/trainjob.hh"

namespace trainer {

template <class D>
void RuntimeRef::describe(D& d) {
  d.required("name", &RuntimeRef::name).min_length(1).max_length(253).doc("The runtime's name.");
  d.field("apiGroup", &RuntimeRef::apiGroup)
      .max_length(253)
      .defaults_to("trainer.kubeflow.org")
      .doc("The runtime's API group.");
  d.field("kind", &RuntimeRef::kind)
      .max_length(253)
      .defaults_to("ClusterTrainingRuntime")
      .doc("ClusterTrainingRuntime, or TrainingRuntime for one in the TrainJob's namespace.");
}

template <class D>
void InitializerSource::describe(D& d) {
  d.field("storageUri", &InitializerSource::storageUri)
      .max_length(2048)
      .rule({"self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
             "storageUri may be empty, or it must be a valid URI (scheme://...)",
             [](const kube::Json& self) {
               return self.as_string().empty() || wire::is_uri(self.as_string());
             }})
      .doc("Where to load from, such as hf://ORGANISATION/NAME or s3://BUCKET/PATH.");
  d.field("env", &InitializerSource::env)
      .kubernetes("EnvVar")
      .list_map("name")
      .max_items(128)
      .doc("Environment of the initializer's container.");
  d.field("secretRef", &InitializerSource::secretRef)
      .kubernetes("LocalObjectReference")
      .doc("A Secret whose keys become environment variables of the initializer.");
}

template <class D>
void Initializer::describe(D& d) {
  d.field("dataset", &Initializer::dataset).doc("What is loaded into /workspace/dataset.");
  d.field("model", &Initializer::model).doc("What is loaded into /workspace/model.");
}

template <class D>
void Trainer::describe(D& d) {
  d.field("image", &Trainer::image).max_length(500).doc("Image of the container node.");
  d.field("command", &Trainer::command)
      .list_atomic()
      .max_items(128)
      .item_max_length(1048576)
      .doc("Entrypoint of the container node.");
  d.field("args", &Trainer::args)
      .list_atomic()
      .max_items(128)
      .item_max_length(1048576)
      .doc("Arguments of the container node.");
  d.field("env", &Trainer::env)
      .kubernetes("EnvVar")
      .list_map("name")
      .max_items(128)
      .doc("Environment of the container node; takes precedence over the runtime's.");
  d.field("numNodes", &Trainer::numNodes).minimum(0).doc("How many training nodes there are.");
  d.field("resourcesPerNode", &Trainer::resourcesPerNode)
      .kubernetes("ResourceRequirements")
      .doc("Resources of the container node.");
  d.field("numProcPerNode", &Trainer::numProcPerNode)
      .rule(wire::at_least_one("numProcPerNode must be greater than or equal to 1"))
      .doc("How many processes each node runs; by default as many as its resources suggest.");
}

template <class D>
void RuntimePatch::describe(D& d) {
  d.required("manager", &RuntimePatch::manager)
      .min_length(1)
      .max_length(253)
      .immutable("field is immutable")
      .doc("Who wrote the patch, as a domain-prefixed path such as kueue.x-k8s.io/manager.");
  d.field("time", &RuntimePatch::time).doc("When the patch was last changed; kept by admission.");
  d.field("trainingRuntimeSpec", &RuntimePatch::trainingRuntimeSpec)
      .template shape<RuntimeSpecPatch>()
      .doc("Merged into the runtime's spec.");
}

template <class D>
void TrainJobSpec::describe(D& d) {
  // A field's own rule does not run when the field is added or removed.
  d.self().rule({.cel = "has(self.failurePolicy) == has(oldSelf.failurePolicy)",
                 .message = "failurePolicy is immutable, and can be neither added nor removed",
                 .keeps = [](const kube::Json& self, const kube::Json& before, const wire::Same&) {
                   return (self.find("failurePolicy") == nullptr) ==
                          (before.find("failurePolicy") == nullptr);
                 }});
  d.required("runtimeRef", &TrainJobSpec::runtimeRef)
      .immutable("field is immutable")
      .doc("The blueprint this job is made from.");
  d.field("initializer", &TrainJobSpec::initializer)
      .immutable("field is immutable")
      .doc("What is loaded before training starts.");
  d.field("trainer", &TrainJobSpec::trainer).doc("What is trained, and on how many nodes.");
  d.field("runtimePatches", &TrainJobSpec::runtimePatches)
      .list_map("manager")
      .max_items(16)
      .doc("Changes to the runtime, for this job only, in the order in which they are merged.");
  d.field("suspend", &TrainJobSpec::suspend)
      .defaults_to(false)
      .doc("Whether the job is held back, for example by a queue.");
  d.field("activeDeadlineSeconds", &TrainJobSpec::activeDeadlineSeconds)
      .minimum(1)
      .immutable("field is immutable")
      .doc("How long the job may take, from its creation or its last resumption, before it fails.");
  d.field("managedBy", &TrainJobSpec::managedBy)
      .max_length(253)
      .defaults_to("trainer.kubeflow.org/trainjob-controller")
      .rule({"self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']",
             "ManagedBy must be trainer.kubeflow.org/trainjob-controller or "
             "kueue.x-k8s.io/multikueue "
             "if set",
             [](const kube::Json& self) {
               return self.as_string() == kTrainJobController ||
                      self.as_string() == kMultiKueueController;
             }})
      .immutable("field is immutable")
      .doc("The controller that runs this job.");
  d.field("ttlSecondsAfterFinished", &TrainJobSpec::ttlSecondsAfterFinished)
      .minimum(0)
      .doc("The finished job is deleted after this many seconds. An extension.");
  d.field("failurePolicy", &TrainJobSpec::failurePolicy)
      .immutable("field is immutable")
      .doc("What a failed Job leads to, over what the runtime says. An extension.");
  d.removed(
      "podTemplateOverrides", wire::Removed::kObjects,
      "was removed in v2.2: write the same into runtimePatches[].trainingRuntimeSpec.template.spec."
      "replicatedJobs[].template.spec.template");
  d.removed(
      "podSpecOverrides", wire::Removed::kObjects,
      "was removed in v2.1: write the same into runtimePatches[].trainingRuntimeSpec.template.spec."
      "replicatedJobs[].template.spec.template.spec");
  d.removed(
      "labels", wire::Removed::kStrings,
      "was removed in v2.2: write runtimePatches[].trainingRuntimeSpec.template.metadata.labels");
  d.removed("annotations", wire::Removed::kStrings,
            "was removed in v2.2: write "
            "runtimePatches[].trainingRuntimeSpec.template.metadata.annotations");
}

// Returns metadata.name, or "" if the API server has yet to generate it.
inline std::string_view name_of(const kube::Json& object) {
  const kube::Json* metadata = object.find("metadata");
  return metadata == nullptr ? std::string_view() : metadata->get_string("name");
}

template <class D>
void TrainJob::describe(D& d) {
  d.self()
      .doc("A training job: what is trained, on how many nodes, and the runtime it is made from.")
      .rule({"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
             "metadata.name must match RFC 1035 DNS label format",
             [](const kube::Json& self) {
               const std::string_view name = name_of(self);
               return name.empty() || wire::is_dns_label(name);
             }})
      .rule({"size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters",
             [](const kube::Json& self) { return name_of(self).size() <= 63; }})
      .rule(wire::trainer_stays())
      .rule(wire::nodes_stay_within_bounds())
      .rule(wire::trainer_is_not_added());
  d.field("metadata", &TrainJob::metadata);
  d.field("spec", &TrainJob::spec).doc("What shall be trained.");
  d.field("status", &TrainJob::status).doc("What is seen of it.");
}

}  // namespace trainer
