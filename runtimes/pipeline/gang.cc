#include "runtimes/pipeline/gang.hh"

#include <algorithm>
#include <utility>

#include "kube/model/name_index.hh"

namespace trainer::pipeline {

namespace {

// The edges lead from each job to the jobs for which it must wait before it can start.
using Edges = std::vector<std::vector<std::size_t>>;

Edges dependencies(const Draft& draft, const kube::NameIndex& jobs) {
  Edges edges(draft.pod_sets.size());
  // If the jobs start in order, each job waits until the one before it is ready.
  const bool is_in_order =
      draft.spec.startupPolicy && draft.spec.startupPolicy->startupPolicyOrder == "InOrder";
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (const DependsOn& dependency : draft.spec.replicatedJobs[i].dependsOn)
      if (const auto on = jobs.find(dependency.name); on && *on != i) edges[i].push_back(*on);
    if (is_in_order && i > 0) edges[i].push_back(i - 1);
  }
  return edges;
}

Edges reversed(const Edges& edges) {
  Edges back(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i)
    for (const std::size_t on : edges[i]) back[on].push_back(i);
  return back;
}

// Returns which jobs are reached along the edges from one of `starts` other than themselves. For
// each job, two starts are kept: at least one of them is not the job itself. So each edge is
// followed twice at most.
std::vector<bool> reached(const Edges& edges, const std::vector<bool>& starts) {
  std::vector<std::vector<std::size_t>> from(edges.size());
  std::vector<std::pair<std::size_t, std::size_t>> open;  // job, start
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (starts[i]) open.emplace_back(i, i);
  while (!open.empty()) {
    const auto [job, start] = open.back();
    open.pop_back();
    for (const std::size_t next : edges[job]) {
      auto& known = from[next];
      if (known.size() == 2 || (known.size() == 1 && known[0] == start)) continue;
      known.push_back(start);
      open.emplace_back(next, start);
    }
  }
  std::vector<bool> found(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i)
    found[i] = std::any_of(from[i].begin(), from[i].end(), [i](std::size_t s) { return s != i; });
  return found;
}

// Returns the jobs whose pods train. Under MPI those are the nodes; the launcher only starts them.
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

std::vector<bool> awaited_to_complete(const Draft& draft, const kube::NameIndex& jobs) {
  std::vector<bool> found(draft.pod_sets.size(), false);
  for (const ReplicatedJob& job : draft.spec.replicatedJobs)
    for (const DependsOn& dependency : job.dependsOn)
      if (const auto on = jobs.find(dependency.name); on && dependency.status == "Complete")
        found[*on] = true;
  return found;
}

}  // namespace

std::vector<bool> gang_members(const Draft& draft) {
  const kube::NameIndex jobs(draft.pod_sets,
                             [](const PodSet& set) { return std::string_view(set.name); });
  const Edges edges = dependencies(draft, jobs);
  const std::vector<bool> trains = trainers(draft);
  const std::vector<bool> precedes = reached(edges, trains);
  const std::vector<bool> is_awaited = awaited_to_complete(draft, jobs);
  std::vector<bool> members = trains;
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i] = trains[i] || (!precedes[i] && !is_awaited[i]);
  const std::vector<bool> waits = reached(reversed(edges), members);
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = members[i] && !waits[i];
  return members;
}

GangSize size_of_gang(const Draft& draft, const std::vector<bool>& members) {
  GangSize size;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i]) continue;
    const PodSet& set = draft.pod_sets[i];
    const std::int64_t pods = set.least_pods();
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
