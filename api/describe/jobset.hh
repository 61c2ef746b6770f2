// This is the wire form and the schema of jobset.x-k8s.io/v1alpha2. Include it only where a visitor
// is instantiated.
#pragma once

#include <algorithm>

#include "api/describe/attributes.hh"
#include "api/jobset.hh"

namespace trainer {

template <class D>
void DependsOn::describe(D& d) {
  d.required("name", &DependsOn::name).doc("A replicated job that stands further up in the list.");
  d.required("status", &DependsOn::status)
      .one_of({"Ready", "Complete"})
      .doc("What that job must have reached: all its pods ready, or all its Jobs complete.");
}

template <class D>
void ReplicatedJob::describe(D& d) {
  d.required("name", &ReplicatedJob::name)
      .doc("Part of the names of the Jobs; unique in the list.");
  d.field("groupName", &ReplicatedJob::groupName)
      .defaults_to("default")
      .doc("Replicated jobs of one group are counted together in the group labels.");
  d.required("template", &ReplicatedJob::template_)
      .kubernetes("JobTemplateSpec")
      .doc("The template of every Job of this replicated job.");
  d.field("replicas", &ReplicatedJob::replicas)
      .minimum(0)
      .defaults_to(1)
      .doc("How many Jobs are made from the template.");
  d.field("dependsOn", &ReplicatedJob::dependsOn)
      .list_map("name")
      .max_items(5)
      .immutable("Value is immutable")
      .doc("What must hold before the Jobs of this replicated job are created.");
}

template <class D>
void Network::describe(D& d) {
  d.field("enableDNSHostnames", &Network::enableDNSHostnames)
      .doc("Whether a headless Service gives every pod a DNS name; true where nothing is said.");
  d.field("subdomain", &Network::subdomain)
      .doc("The Service's name; the JobSet's own where nothing is said.");
  d.field("publishNotReadyAddresses", &Network::publishNotReadyAddresses)
      .doc("Whether the names resolve before pods are ready; true where nothing is said.");
}

template <class D>
void SuccessPolicy::describe(D& d) {
  d.required("operator", &SuccessPolicy::operator_)
      .one_of({"All", "Any"})
      .doc("Whether all of the targeted Jobs must succeed or one is enough.");
  d.field("targetReplicatedJobs", &SuccessPolicy::targetReplicatedJobs)
      .list_atomic()
      .doc("The replicated jobs that count; all where the list is empty.");
}

template <class D>
void FailurePolicyRule::describe(D& d) {
  d.required("name", &FailurePolicyRule::name)
      .doc("Stands in the reason of a restart; unique among the rules.");
  d.required("action", &FailurePolicyRule::action)
      .one_of({"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob",
               "RestartJobAndIgnoreMaxRestarts"})
      .doc("What happens when the rule matches a failed Job.");
  d.field("onJobFailureReasons", &FailurePolicyRule::onJobFailureReasons)
      .doc("Reasons of the Job's Failed condition that match; any where the list is empty.");
  d.field("onJobFailureMessagePatterns", &FailurePolicyRule::onJobFailureMessagePatterns)
      .doc("RE2 patterns, one of which must occur in that condition's message.");
  d.field("targetReplicatedJobs", &FailurePolicyRule::targetReplicatedJobs)
      .list_atomic()
      .doc("The replicated jobs the rule speaks of; all where the list is empty.");
}

template <class D>
void FailurePolicy::describe(D& d) {
  d.field("maxRestarts", &FailurePolicy::maxRestarts)
      .doc("How many counted restarts there may be before the JobSet fails; 0 by default.");
  d.field("restartStrategy", &FailurePolicy::restartStrategy)
      .one_of({"Recreate", "BlockingRecreate", "InPlaceRestart"})
      .defaults_to("Recreate")
      .doc(
          "Recreate replaces each Job as soon as it is gone; BlockingRecreate waits for all of "
          "them.");
  d.field("rules", &FailurePolicy::rules).doc("The first rule that matches a failed Job decides.");
}

template <class D>
void StartupPolicy::describe(D& d) {
  d.required("startupPolicyOrder", &StartupPolicy::startupPolicyOrder)
      .one_of({"AnyOrder", "InOrder"})
      .doc("InOrder starts each replicated job when the one before it is ready.");
}

template <class D>
void Coordinator::describe(D& d) {
  d.required("replicatedJob", &Coordinator::replicatedJob)
      .doc("The replicated job of the coordinator's pod.");
  d.field("jobIndex", &Coordinator::jobIndex).doc("The Job's index in its replicated job.");
  d.field("podIndex", &Coordinator::podIndex).doc("The pod's completion index in its Job.");
}

template <class D>
void RetentionPolicy::describe(D& d) {
  d.field("whenDeleted", &RetentionPolicy::whenDeleted)
      .one_of({"Delete", "Retain"})
      .defaults_to("Delete")
      .doc("Whether the claims go with the JobSet or stay.");
}

template <class D>
void VolumeClaimPolicy::describe(D& d) {
  d.self().rule(
      // "namespace" is a word of CEL: Kubernetes 1.31 knows the field as escaped only.
      {"self.templates.all(t, !has(t.metadata.__namespace__) || size(t.metadata.__namespace__) == "
       "0)",
       "namespace cannot be set for VolumeClaimPolicies templates", [](const kube::Json& self) {
         if (self.find("templates") == nullptr) return false;
         const kube::Json::Array& claims = self.get_array("templates");
         return std::all_of(claims.begin(), claims.end(), [](const kube::Json& claim) {
           const kube::Json* metadata = claim.find("metadata");
           return metadata != nullptr && metadata->get_string("namespace").empty();
         });
       }});
  d.field("templates", &VolumeClaimPolicy::templates)
      .kubernetes("PersistentVolumeClaim")
      .list_atomic()
      .max_items(50)
      .doc(
          "Claims made for the JobSet; a volume of the same name is added where a container mounts "
          "it.");
  d.field("retentionPolicy", &VolumeClaimPolicy::retentionPolicy)
      .doc("What happens to the claims in the end.");
}

template <class D>
void JobSetSpec::describe(D& d) {
  d.self().rule(
      {"!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
       "self.replicatedJobs.exists(x, has(x.dependsOn)))",
       "StartupPolicy and DependsOn APIs are mutually exclusive", [](const kube::Json& self) {
         const kube::Json* policy = self.find("startupPolicy");
         if (policy == nullptr || policy->get_string("startupPolicyOrder") != "InOrder")
           return true;
         if (self.find("replicatedJobs") == nullptr) return false;
         const kube::Json::Array& jobs = self.get_array("replicatedJobs");
         return std::none_of(jobs.begin(), jobs.end(), [](const kube::Json& job) {
           return job.find("dependsOn") != nullptr;
         });
       }});
  d.field("replicatedJobs", &JobSetSpec::replicatedJobs)
      .list_map("name")
      .doc("Groups of Jobs made from one template each.");
  d.field("network", &JobSetSpec::network)
      .immutable("Value is immutable")
      .doc("How the pods find each other.");
  d.field("successPolicy", &JobSetSpec::successPolicy)
      .immutable("Value is immutable")
      .doc("When the JobSet is complete.");
  d.field("failurePolicy", &JobSetSpec::failurePolicy)
      .immutable("Value is immutable")
      .doc("What a failed Job leads to; the JobSet fails where nothing is said.");
  d.field("startupPolicy", &JobSetSpec::startupPolicy)
      .immutable("Value is immutable")
      .doc("In what order replicated jobs start. Deprecated: dependsOn says more.");
  d.field("suspend", &JobSetSpec::suspend).doc("Whether the Jobs are held back.");
  d.field("coordinator", &JobSetSpec::coordinator)
      .doc("The pod whose address every Job and pod gets as a label and an annotation.");
  d.field("managedBy", &JobSetSpec::managedBy)
      .doc("The controller that runs this JobSet, where it is another one.");
  d.field("ttlSecondsAfterFinished", &JobSetSpec::ttlSecondsAfterFinished)
      .minimum(0)
      .doc("The finished JobSet is deleted after this many seconds.");
  d.field("volumeClaimPolicies", &JobSetSpec::volumeClaimPolicies)
      .list_atomic()
      .max_items(50)
      .immutable("Value is immutable")
      .doc("Volume claims that are made with the JobSet.");
}

template <class D>
void ReplicatedJobStatus::describe(D& d) {
  d.required("name", &ReplicatedJobStatus::name).doc("The replicated job.");
  d.required("ready", &ReplicatedJobStatus::ready)
      .doc("Jobs whose pods are all ready or succeeded.");
  d.required("succeeded", &ReplicatedJobStatus::succeeded).doc("Jobs that are complete.");
  d.required("failed", &ReplicatedJobStatus::failed).doc("Jobs that failed.");
  d.required("active", &ReplicatedJobStatus::active).doc("Jobs that have pods running or pending.");
  d.required("suspended", &ReplicatedJobStatus::suspended).doc("Jobs that are held back.");
  d.field("jobRestarts", &ReplicatedJobStatus::jobRestarts)
      .list_atomic()
      .max_items(kMaxJobRestarts)
      .doc("By job index, how often that Job alone was restarted.");
  d.field("jobRestartsCountTowardsMax", &ReplicatedJobStatus::jobRestartsCountTowardsMax)
      .list_atomic()
      .max_items(kMaxJobRestarts)
      .doc("By job index, how many of those restarts count towards maxRestarts.");
}

template <class D>
void JobSetStatus::describe(D& d) {
  d.field("conditions", &JobSetStatus::conditions)
      .list_map("type")
      .doc("Suspended, Completed, Failed, and what startupPolicy waits for.");
  d.always("restarts", &JobSetStatus::restarts).doc("How often the whole JobSet was restarted.");
  d.field("restartsCountTowardsMax", &JobSetStatus::restartsCountTowardsMax)
      .doc("How many of those restarts count towards maxRestarts.");
  d.field("executionAttempts", &JobSetStatus::executionAttempts)
      .minimum(0)
      .doc(
          "The number of the run, from 0: restarts and resumptions raise it. Only if a pod "
          "template has the annotation jobset.sigs.k8s.io/execution-attempt.");
  d.field("terminalState", &JobSetStatus::terminalState)
      .doc("Completed or Failed, once it has ended.");
  d.field("replicatedJobsStatus", &JobSetStatus::replicatedJobsStatus)
      .list_map("name")
      .doc("By replicated job, how many of its Jobs are in which state.");
  d.field("previousInPlaceRestartAttempt", &JobSetStatus::previousInPlaceRestartAttempt)
      .minimum(0)
      .doc("The attempt that pods must leave in an in-place restart.");
  d.field("currentInPlaceRestartAttempt", &JobSetStatus::currentInPlaceRestartAttempt)
      .minimum(0)
      .doc("The attempt that all pods have reached.");
}

template <class D>
void JobSet::describe(D& d) {
  d.self().doc("Jobs that start, succeed, fail and restart as one.");
  d.field("metadata", &JobSet::metadata);
  d.field("spec", &JobSet::spec).doc("What shall run.");
  d.field("status", &JobSet::status).doc("What is seen of it.");
}

}  // namespace trainer
