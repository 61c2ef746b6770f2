#include "runtimes/plugins/torch/elastic.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/plugins/torch/torchtune.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

kube::FieldError refuse_runtime(const Draft& draft, std::string detail) {
  return kube::invalid("spec.runtimeRef", draft.job.spec.runtimeRef.name,
                       fmt::format("mlPolicy.torch.elasticPolicy of the runtime lets the number of "
                                   "nodes change: {}",
                                   detail));
}

// Kueue has given the quota of so many nodes as the job began with.
void check_queue(const Draft& draft, const jobset::ElasticNodes& nodes, kube::FieldErrors& errors) {
  const std::string_view queue = queue_of(draft.job.metadata.labels);
  if (queue.empty() || nodes.least == nodes.most) return;
  errors.push_back(kube::invalid(
      kube::join_key("metadata.labels", kQueueLabel), queue,
      fmt::format("Kueue admits a TrainJob with a fixed number of nodes, and elasticPolicy of "
                  "runtime \"{}\" lets it change from {} to {}: leave the queue out, or name a "
                  "runtime with equal minNodes and maxNodes",
                  draft.job.spec.runtimeRef.name, nodes.least, nodes.most)));
}

}  // namespace

std::string ElasticPolicy::range() const {
  return fmt::format("{}:{}", nodes.least, nodes.most);
}

std::optional<ElasticPolicy> elastic_policy_of(const TorchPolicy& policy) {
  const auto& elastic = policy.elasticPolicy;
  if (!elastic || !elastic->minNodes || !elastic->maxNodes) return std::nullopt;
  ElasticPolicy made{{*elastic->minNodes, *elastic->maxNodes}};
  if (elastic->maxRestarts) made.restarts = *elastic->maxRestarts;
  return made;
}

void make_elastic(Draft& draft, std::size_t index, const ElasticPolicy& policy,
                  std::string_view source) {
  draft.pod_sets[index].bounds = policy.nodes;
  draft.set_annotation(jobset::kElasticNodesKey, policy.range(), source);
  kube::Json& spec = draft.spec.replicatedJobs[index].template_["spec"];
  const auto set = [&](std::string_view member, kube::Json value) {
    spec.set(member, std::move(value));
    if (draft.journal.is_on())
      draft.journal.note(fmt::format("{}.template.spec.{}", draft.job_path(index), member), source);
  };
  // A pod that ends is one node less, and the Job makes another one of the same index. Two of one
  // index would disturb each other. A loss of index 0 ends the pods of all nodes at once.
  set("backoffLimit", kube::saturating_multiply(std::max(policy.restarts, 1), policy.nodes.most));
  set("podReplacementPolicy", "Failed");
  // Index 0 has the store of the rendezvous and leaves it last. A node that comes after the end, or
  // is missing then, would find no others.
  set("successPolicy",
      kube::Json::object(
          {{"rules", kube::Json::array({kube::Json::object({{"succeededIndexes", "0"}})})}}));
  if (!spec.get("podFailurePolicy").is_null()) return;
  // A drain or a preemption is no failure of the job.
  kube::Json condition = kube::Json::object({{"type", "DisruptionTarget"}, {"status", "True"}});
  kube::Json rule = kube::Json::object(
      {{"action", "Ignore"}, {"onPodConditions", kube::Json::array({std::move(condition)})}});
  set("podFailurePolicy", kube::Json::object({{"rules", kube::Json::array({std::move(rule)})}}));
}

void check_elastic(const Draft& draft, const TorchPolicy& policy, kube::FieldErrors& errors) {
  const auto elastic = elastic_policy_of(policy);
  if (!elastic) return;
  const jobset::ElasticNodes& nodes = elastic->nodes;
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!index)
    return errors.push_back(refuse_runtime(
        draft, fmt::format("label the job that trains with {}: trainer", kAncestorLabel)));
  const auto launcher = launcher_of(draft.job, policy);
  if (launcher && *launcher == Launcher::kEnv)
    errors.push_back(refuse_runtime(
        draft, "launcher env starts processes for a fixed number: use launcher torchrun"));
  if (torchtune::is_torchtune(draft.command))
    errors.push_back(refuse_runtime(
        draft,
        "recipes of torchtune begin again from the start when a node comes or goes: write a "
        "command that resumes from a checkpoint, or use another runtime"));
  const std::int32_t count = expected_pods(draft, *index);
  if (count < nodes.least || count > nodes.most)
    errors.push_back(kube::invalid(
        "spec.trainer.numNodes", count,
        fmt::format("runtime \"{}\" allows {} to {} nodes (mlPolicy.torch.elasticPolicy)",
                    draft.job.spec.runtimeRef.name, nodes.least, nodes.most)));
  check_queue(draft, nodes, errors);
}

}  // namespace trainer::pipeline
