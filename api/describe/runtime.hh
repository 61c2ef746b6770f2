// This is the wire form and the schema of the training runtimes. Include it only where a visitor is
// instantiated.
#pragma once

#include <algorithm>

#include "api/describe/attributes.hh"
#include "api/describe/jobset.hh"
#include "api/describe/run_policy.hh"
#include "api/runtime.hh"

namespace trainer {

template <class D>
void EnvInjectionTarget::describe(D& d) {
  d.required("jobName", &EnvInjectionTarget::jobName)
      .min_length(1)
      .max_length(253)
      .doc("The replicated job.");
  d.required("containerNames", &EnvInjectionTarget::containerNames)
      .list_set()
      .min_items(1)
      .max_items(8)
      .item_max_length(63)
      .rule(
          {"!self.exists(c, c == 'node')",
           "containerNames must not include the main node container because PET_* envs are always "
           "injected into it",
           [](const kube::Json& self) {
             return std::find(self.as_array().begin(), self.as_array().end(), kube::Json("node")) ==
                    self.as_array().end();
           }})
      .doc("Containers and init containers of its pods.");
}

template <class D>
void EnvInjection::describe(D& d) {
  d.field("targets", &EnvInjection::targets)
      .list_map("jobName")
      .max_items(16)
      .doc("Where the PET_* environment goes besides the container node.");
}

template <class D>
void TorchElasticPolicy::describe(D& d) {
  d.self().rule(
      {"has(self.minNodes) == has(self.maxNodes) && (!has(self.minNodes) || "
       "self.minNodes <= self.maxNodes)",
       "minNodes and maxNodes must be set together, and minNodes must be at most maxNodes",
       [](const kube::Json& self) {
         const kube::Json* least = self.find("minNodes");
         const kube::Json* most = self.find("maxNodes");
         if (least == nullptr || most == nullptr) return least == most;
         return least->is_int() && most->is_int() && least->as_int() <= most->as_int();
       }});
  d.field("minNodes", &TorchElasticPolicy::minNodes)
      .minimum(1)
      .doc("The training goes on while this many nodes run.");
  d.field("maxNodes", &TorchElasticPolicy::maxNodes)
      .minimum(1)
      .doc("spec.trainer.numNodes of a running job may become this large.");
  d.field("maxRestarts", &TorchElasticPolicy::maxRestarts)
      .minimum(0)
      .doc(
          "How often torchrun of a node starts its processes again; by default 3. This times "
          "maxNodes is how many pods may fail before the Job does.");
  d.removed(
      "metrics", wire::Removed::kObjects,
      "is not supported: create a HorizontalPodAutoscaler whose scaleTargetRef is the TrainJob");
}

template <class D>
void TorchPolicy::describe(D& d) {
  d.field("elasticPolicy", &TorchPolicy::elasticPolicy)
      .doc("The number of nodes may change while a job runs. An extension with the names of v2.1.");
  d.field("numProcPerNode", &TorchPolicy::numProcPerNode)
      .rule(
          {"self in ['auto', 'gpu', 'cpu'] || type(self) == int && self >= 1 && self <= 2147483647",
           "numProcPerNode must be auto, gpu, cpu or an int32 of at least 1",
           [](const kube::Json& self) {
             return self.is_string()
                        ? self.as_string() == "auto" || self.as_string() == "gpu" ||
                              self.as_string() == "cpu"
                        : self.is_int() && self.as_int() >= 1 && self.as_int() <= 2147483647;
           }})
      .doc("How many processes each node runs where the TrainJob says nothing. An extension.");
  d.field("launcher", &TorchPolicy::launcher)
      .one_of({"torchrun", "env"})
      .doc("What makes one training of a plain Python command. An extension.");
  d.field("envInjection", &TorchPolicy::envInjection)
      .doc("Gives the torchrun environment to further containers.");
}

template <class D>
void MpiPolicy::describe(D& d) {
  d.field("numProcPerNode", &MpiPolicy::numProcPerNode)
      .defaults_to(1)
      .rule(wire::at_least_one("NumProcPerNode in mpiPolicy must be >= 1"))
      .doc("Slots of each node in the hostfile.");
  d.field("mpiImplementation", &MpiPolicy::mpiImplementation)
      .one_of({"OpenMPI", "", "Intel", "MPICH"})
      .defaults_to("OpenMPI")
      .doc("Decides the hostfile's form and the launcher's environment.");
  d.field("sshAuthMountPath", &MpiPolicy::sshAuthMountPath)
      .max_length(4096)
      .defaults_to("/root/.ssh")
      .doc("Where the job's SSH keys are mounted.");
  d.field("runLauncherAsNode", &MpiPolicy::runLauncherAsNode)
      .defaults_to(false)
      .doc("Whether the launcher also counts as the first node.");
}

template <class D>
void FluxPolicy::describe(D& d) {
  d.field("numProcPerNode", &FluxPolicy::numProcPerNode)
      .defaults_to(1)
      .rule(wire::at_least_one("NumProcPerNode in fluxPolicy must be >= 1"))
      .doc("Tasks of each node.");
}

template <class D>
void EmptyPolicy::describe(D&) {}

template <class D>
void MlPolicy::describe(D& d) {
  d.self().rule(
      {"[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
       ".filter(x, x).size() <= 1",
       "Only one of the policy can be configured", [](const kube::Json& self) {
         int policies = 0;
         for (const char* name : {"torch", "mpi", "jax", "xgboost", "flux"})
           if (self.find(name) != nullptr) ++policies;
         return policies <= 1;
       }});
  d.field("numNodes", &MlPolicy::numNodes).doc("Training nodes where the TrainJob says nothing.");
  d.field("torch", &MlPolicy::torch).doc("The environment of torchrun.");
  d.field("mpi", &MlPolicy::mpi).doc("A launcher, a hostfile and SSH keys.");
  d.field("jax", &MlPolicy::jax).doc("The environment of jax.distributed.");
  d.field("xgboost", &MlPolicy::xgboost).doc("The environment of XGBoost's collective.");
  d.field("flux", &MlPolicy::flux).doc("A Flux broker on every node.");
}

template <class D>
void CoschedulingPolicy::describe(D& d) {
  d.field("scheduleTimeoutSeconds", &CoschedulingPolicy::scheduleTimeoutSeconds)
      .defaults_to(60)
      .doc("How long the scheduler waits for the whole gang.");
}

template <class D>
void NetworkTopology::describe(D& d) {
  d.field("mode", &NetworkTopology::mode)
      .one_of({"hard", "soft"})
      .defaults_to("hard")
      .doc("Whether the highest tier is a condition or a wish.");
  d.field("highestTierAllowed", &NetworkTopology::highestTierAllowed)
      .defaults_to(1)
      .doc("The widest network tier that the gang may span.");
}

template <class D>
void VolcanoPolicy::describe(D& d) {
  d.field("networkTopology", &VolcanoPolicy::networkTopology)
      .doc("How near to each other the pods must be.");
}

template <class D>
void PodGroupPolicy::describe(D& d) {
  d.field("coscheduling", &PodGroupPolicy::coscheduling)
      .doc("A gang for the coscheduling plugin of kube-scheduler.");
  d.field("volcano", &PodGroupPolicy::volcano).doc("A gang for Volcano.");
  d.field("workload", &PodGroupPolicy::workload)
      .doc("A gang for Kubernetes' own scheduler, by its Workload API. An extension.");
}

template <class D>
void JobSetTemplate::describe(D& d) {
  d.self().min_properties(1);
  d.field("metadata", &JobSetTemplate::metadata)
      .kubernetes("ObjectMeta")
      .doc("Labels and annotations of the JobSet.");
  d.field("spec", &JobSetTemplate::spec)
      .doc("The JobSet that every job of this runtime starts from.");
}

template <class D>
void TrainingRuntimeSpec::describe(D& d) {
  d.self().min_properties(1);
  d.field("mlPolicy", &TrainingRuntimeSpec::mlPolicy)
      .doc("How the framework is told about its nodes and processes.");
  d.field("podGroupPolicy", &TrainingRuntimeSpec::podGroupPolicy)
      .doc("How the pods are scheduled together.");
  d.field("runPolicy", &TrainingRuntimeSpec::runPolicy)
      .doc("Defaults for the jobs of this runtime. An extension.");
  d.field("template", &TrainingRuntimeSpec::template_).doc("The JobSet template.");
}

template <class D>
void Runtime::describe(D& d) {
  d.self().doc("What TrainJobs are made from: pods, images, framework and policies.");
  d.field("kind", &Runtime::kind);
  d.field("metadata", &Runtime::metadata);
  d.field("spec", &Runtime::spec).doc("A blueprint for TrainJobs.");
}

}  // namespace trainer
