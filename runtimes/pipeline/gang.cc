#include "runtimes/pipeline/gang.hh"

#include <algorithm>

namespace trainer::pipeline {

namespace {

// reaches[a][b]: job a cannot start before something of job b has happened, directly or through
// others.
using Reach = std::vector<std::vector<bool>>;

Reach closure(const Draft& draft) {
  const std::size_t count = draft.pod_sets.size();
  Reach reaches(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i)
    for (const DependsOn& dependency : draft.spec.replicatedJobs[i].dependsOn)
      if (const auto on = draft.find_job(dependency.name); on && *on != i) reaches[i][*on] = true;
  // In order, each job waits until the one before it is ready.
  if (draft.spec.startupPolicy && draft.spec.startupPolicy->startupPolicyOrder == "InOrder")
    for (std::size_t i = 1; i < count; ++i) reaches[i][i - 1] = true;
  for (std::size_t via = 0; via < count; ++via)
    for (std::size_t from = 0; from < count; ++from)
      for (std::size_t to = 0; reaches[from][via] && to < count; ++to)
        if (reaches[via][to]) reaches[from][to] = true;
  return reaches;
}

// The jobs whose pods train. Under MPI those are the nodes; the launcher only starts them.
std::vector<bool> trainers(const Draft& draft) {
  std::vector<bool> found(draft.pod_sets.size(), false);
  const MlPolicy* policy = draft.ml_policy();
  if (policy != nullptr && policy->mpi) {
    if (const auto node = draft.find_job(kNode)) {
      found[*node] = true;
      return found;
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = draft.pod_sets[i].ancestor == kTrainerStep;
  return found;
}

bool is_awaited_to_complete(const Draft& draft, std::size_t index) {
  const std::string& name = draft.pod_sets[index].name;
  return std::any_of(
      draft.spec.replicatedJobs.begin(), draft.spec.replicatedJobs.end(), [&name](const auto& job) {
        return std::any_of(job.dependsOn.begin(), job.dependsOn.end(), [&name](const auto& on) {
          return on.name == name && on.status == "Complete";
        });
      });
}

}  // namespace

std::vector<bool> gang_members(const Draft& draft) {
  const std::size_t count = draft.pod_sets.size();
  const Reach reaches = closure(draft);
  const std::vector<bool> trains = trainers(draft);
  std::vector<bool> candidates = trains;
  for (std::size_t i = 0; i < count; ++i) {
    if (trains[i]) continue;
    bool comes_first = is_awaited_to_complete(draft, i);
    for (std::size_t t = 0; t < count; ++t)
      comes_first = comes_first || (trains[t] && reaches[t][i]);
    candidates[i] = !comes_first;
  }
  std::vector<bool> members = candidates;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t other = 0; other < count; ++other)
      if (candidates[other] && i != other && reaches[i][other]) members[i] = false;
  return members;
}

GangSize size_of_gang(const Draft& draft, const std::vector<bool>& members) {
  GangSize size;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i]) continue;
    const PodSet& set = draft.pod_sets[i];
    const std::int64_t pods = std::int64_t{set.count} * std::max(set.replicas, 0);
    size.pods += pods;
    for (kube::Quantity amount; const auto& [name, request] : set.requests) {
      amount = request;
      amount *= pods;
      size.requests[name] += amount;
    }
  }
  return size;
}

}  // namespace trainer::pipeline
