// This is the wire form and the schema of the parts of kubeflow.org/v1 jobs. Include it only where
// a visitor is instantiated. A whole spec is described with the CRD of its kind, since each kind
// has other members.
#pragma once

#include "api/describe/attributes.hh"
#include "api/describe/trainjob.hh"
#include "api/v1job.hh"

namespace trainer::v1 {

template <class D>
void ReplicaSpec::describe(D& d) {
  d.field("replicas", &ReplicaSpec::replicas).doc("How many pods the role has; 1 by default.");
  d.field("template", &ReplicaSpec::template_)
      .kubernetes("PodTemplateSpec")
      .doc("The template of the role's pods.");
  d.field("restartPolicy", &ReplicaSpec::restartPolicy)
      .doc("Always, OnFailure, Never, or ExitCode: exit codes from 128 on restart the pod.");
}

template <class D>
void SchedulingPolicy::describe(D& d) {
  d.field("minAvailable", &SchedulingPolicy::minAvailable)
      .doc("How many pods must be placed together; all by default.");
  d.field("queue", &SchedulingPolicy::queue)
      .immutable("spec.runPolicy.schedulingPolicy.queue is immutable")
      .doc("The queue of Volcano.");
  d.field("minResources", &SchedulingPolicy::minResources)
      .doc("What those pods need together; the sum of their requests by default.");
  d.field("priorityClass", &SchedulingPolicy::priorityClass).doc("Of Volcano's PodGroup.");
  d.field("scheduleTimeoutSeconds", &SchedulingPolicy::scheduleTimeoutSeconds)
      .doc("Of the PodGroup of scheduler-plugins.");
}

template <class D>
void RunPolicy::describe(D& d) {
  d.field("cleanPodPolicy", &RunPolicy::cleanPodPolicy)
      .doc("Which pods of a finished job are deleted: All, Running or None.");
  d.field("ttlSecondsAfterFinished", &RunPolicy::ttlSecondsAfterFinished)
      .doc("The finished job is deleted after this many seconds.");
  d.field("activeDeadlineSeconds", &RunPolicy::activeDeadlineSeconds)
      .doc("The job fails this many seconds after its start.");
  d.field("backoffLimit", &RunPolicy::backoffLimit)
      .doc("How many restarts of containers and pods the whole job may have.");
  d.field("suspend", &RunPolicy::suspend)
      .defaults_to(false)
      .doc("Whether the job's pods are held back.");
  d.field("managedBy", &RunPolicy::managedBy).doc("The controller that runs the job.");
  d.field("schedulingPolicy", &RunPolicy::schedulingPolicy).doc("Of a gang scheduler.");
  d.field("queue", &RunPolicy::queue)
      .immutable("spec.runPolicy.queue is immutable")
      .doc("Counts as schedulingPolicy.queue, where that is absent.");
}

template <class D>
void RendezvousOption::describe(D& d) {
  d.field("key", &RendezvousOption::key).doc("Name of the option.");
  d.field("value", &RendezvousOption::value).doc("Its value.");
}

template <class D>
void ElasticPolicy::describe(D& d) {
  d.field("minReplicas", &ElasticPolicy::minReplicas)
      .doc("With how many workers training goes on.");
  d.field("maxReplicas", &ElasticPolicy::maxReplicas).doc("How many workers there may be.");
  d.field("rdzvBackend", &ElasticPolicy::rdzvBackend).doc("c10d, etcd or etcd-v2.");
  d.field("rdzvPort", &ElasticPolicy::rdzvPort).doc("Port of the rendezvous.");
  d.field("rdzvHost", &ElasticPolicy::rdzvHost)
      .doc("Host of the rendezvous; the first worker by default.");
  d.field("rdzvId", &ElasticPolicy::rdzvId).doc("Name of the rendezvous.");
  d.field("rdzvConf", &ElasticPolicy::rdzvConf).doc("Further options of the rendezvous.");
  d.field("standalone", &ElasticPolicy::standalone)
      .doc("Whether each pod trains alone, with a rendezvous of its own.");
  d.field("nProcPerNode", &ElasticPolicy::nProcPerNode).doc("Deprecated: see spec.nprocPerNode.");
  d.field("maxRestarts", &ElasticPolicy::maxRestarts)
      .doc("How often torchrun starts the processes again.");
  d.field("metrics", &ElasticPolicy::metrics)
      .doc("autoscaling/v2 metrics of a HorizontalPodAutoscaler of the workers.");
}

template <class D>
void JobSpec::describe(D& d) {
  d.field("runPolicy", &JobSpec::runPolicy).doc("How the job runs, ends and is cleaned up.");
  d.field("elasticPolicy", &JobSpec::elasticPolicy)
      .doc("Training goes on while the number of workers changes.");
  d.field("nprocPerNode", &JobSpec::nprocPerNode)
      .doc("Processes of each pod: auto, cpu, gpu or a number.");
  d.field("successPolicy", &JobSpec::successPolicy)
      .doc(
          "Without chief or master: the first worker must succeed, or with AllWorkers all of "
          "them.");
  d.field("enableDynamicWorker", &JobSpec::enableDynamicWorker)
      .doc("Whether TF_CONFIG of a worker leaves the other workers out, so that they may change.");
  d.field("slotsPerWorker", &JobSpec::slotsPerWorker).doc("Slots of each worker in the hostfile.");
  d.field("mainContainer", &JobSpec::mainContainer)
      .doc("The container of a worker that the launcher reaches; the first one by default.");
  d.field("cleanPodPolicy", &JobSpec::cleanPodPolicy)
      .doc("As runPolicy.cleanPodPolicy, where that is absent.");
  d.field("runLauncherAsWorker", &JobSpec::runLauncherAsWorker)
      .doc("At v2beta1: whether the launcher is one of the hosts, too.");
  d.field("sshAuthMountPath", &JobSpec::sshAuthMountPath)
      .doc("At v2beta1: the folder of the SSH keys in the first container of each pod.");
  d.field("launcherCreationPolicy", &JobSpec::launcherCreationPolicy)
      .doc(
          "At v2beta1: AtStartup, or WaitForWorkersReady for a launcher that is created once all "
          "workers are ready.");
  d.field("mpiImplementation", &JobSpec::mpiImplementation)
      .doc("At v2beta1: OpenMPI, Intel or MPICH.");
}

template <class D>
void JobCondition::describe(D& d) {
  d.required("type", &JobCondition::type)
      .doc("Created, Running, Restarting, Suspended, Succeeded or Failed.");
  d.required("status", &JobCondition::status).doc("Whether it holds: True, False or Unknown.");
  d.field("reason", &JobCondition::reason).doc("Why, in one word.");
  d.field("message", &JobCondition::message).doc("Why, for people.");
  d.field("lastUpdateTime", &JobCondition::lastUpdateTime).doc("When it was last written.");
  d.field("lastTransitionTime", &JobCondition::lastTransitionTime)
      .doc("When the status last changed.");
}

template <class D>
void ReplicaStatus::describe(D& d) {
  d.field("active", &ReplicaStatus::active).doc("Running pods.");
  d.field("succeeded", &ReplicaStatus::succeeded).doc("Pods that succeeded.");
  d.field("failed", &ReplicaStatus::failed).doc("Pods that failed.");
  d.field("labelSelector", &ReplicaStatus::labelSelector)
      .kubernetes("LabelSelector")
      .doc("Deprecated: see selector.");
  d.field("selector", &ReplicaStatus::selector).doc("The labels of the role's pods.");
}

template <class D>
void JobStatus::describe(D& d) {
  d.field("conditions", &JobStatus::conditions).doc("What the job has been through.");
  d.field("replicaStatuses", &JobStatus::replicaStatuses).doc("By role.");
  d.field("startTime", &JobStatus::startTime).doc("When the job was started.");
  d.field("completionTime", &JobStatus::completionTime).doc("When the job ended.");
  d.field("lastReconcileTime", &JobStatus::lastReconcileTime)
      .doc("Since when the job waits for its PodGroup.");
  d.field("restarts", &JobStatus::restarts)
      .doc("Restarts of pods that are gone, as backoffLimit counts them.");
  d.field("restartedPods", &JobStatus::restartedPods)
      .doc("The uids of pods that are counted already and not gone yet.");
  d.field("firstFailure", &JobStatus::firstFailure).doc("The pod that failed first, and how.");
}

}  // namespace trainer::v1
