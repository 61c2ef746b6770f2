#include "runtimes/batch/scheduling.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "kube/model/resources.hh"

namespace trainer::batch {
namespace {

using kube::Json;
using kube::Quantity;
using kube::ResourceList;

// The load is what some pods request, or what a node has. Each pod is one of the resource "pods".
struct Load {
  ResourceList requests;
  std::int32_t assumed_cpus = 0;  // pods that request no CPU
  std::set<std::int32_t> ports;   // the ports of the machine

  void add(const BatchPodView& pod, bool has_shared_ports) {
    for (const auto& [name, amount] : pod.requests) requests[name] += amount;
    requests["pods"] += Quantity::of(1);
    if (!pod.requests.contains("cpu")) ++assumed_cpus;
    if (has_shared_ports || pod.uses_host_network) ports.insert(pod.ports.begin(), pod.ports.end());
  }
  void add(const Load& other) {
    for (const auto& [name, amount] : other.requests) requests[name] += amount;
    assumed_cpus += other.assumed_cpus;
    ports.insert(other.ports.begin(), other.ports.end());
  }
};

struct Group {
  std::string jobset;  // its name; "" for other groups
  std::vector<const BatchPodView*> waiting;
  bool is_running = false;  // has pods on the node
  Load load;                // the load of its pods on the node
};

// The key is the uid of the JobSet, of the pods' controller, or of the pod.
using Groups = std::map<std::string, Group, std::less<>>;

Quantity amount_of(const ResourceList& resources, std::string_view name) {
  const auto at = resources.find(name);
  return at == resources.end() ? Quantity() : at->second;
}

class Scheduler {
 public:
  explicit Scheduler(const SchedulerInput& observed) : observed_(observed) {
    for (const JobView* job : observed_.jobs)
      if (!job->owner_uid.empty()) jobs_.emplace(job->uid, job);
  }

  std::vector<PodPlan> run() {
    for (const BatchPodView* pod : observed_.pods) add_to_group(*pod);
    for (Group* group : sorted_groups()) {
      if (group->jobset.empty()) {
        for (const BatchPodView* pod : group->waiting) decide(*group, {pod});
      } else if (group->is_running || is_complete(*group)) {
        decide(*group, group->waiting);
      }
    }
    return std::move(plans_);
  }

 private:
  void add_to_group(const BatchPodView& pod) {
    if (pod.is_over()) return;
    const auto found = jobs_.find(pod.controller_uid);
    const JobView* const job = found == jobs_.end() ? nullptr : found->second;
    Group& group = groups_[job                          ? job->owner_uid
                           : pod.controller_uid.empty() ? pod.uid
                                                        : pod.controller_uid];
    if (job) group.jobset = pod.jobset;
    if (!pod.node_name.empty()) return add_bound(pod, group);
    if (pod.is_deleting) return;
    if (pod.is_gated)
      return report(pod, "SchedulingGated",
                    "Scheduling is blocked due to non-empty scheduling gates");
    // If the pod's Job is gone or ends, the pod does not wait: it is about to be deleted.
    if (pod.jobset.empty() || (job && is_to_run(*job))) group.waiting.push_back(&pod);
  }

  void add_bound(const BatchPodView& pod, Group& group) {
    Load load;
    load.add(pod, has_shared_ports());
    used_.add(load);
    // The pod is of an earlier attempt. The pod that replaces it cannot have its ports yet.
    if (pod.is_deleting) load.ports.clear();
    group.load.add(load);
    group.is_running = group.is_running || !pod.is_deleting;
  }

  static bool is_to_run(const JobView& job) {
    return !job.finished && !job.failure_target && !job.is_suspended && !job.is_deleting;
  }

  // A group that runs in part comes first: the resources that it lacks must not go to another one.
  std::vector<Group*> sorted_groups() {
    std::vector<Group*> groups;
    for (auto& [uid, group] : groups_) {
      if (group.waiting.empty()) continue;
      std::sort(group.waiting.begin(), group.waiting.end(),
                [](const BatchPodView* a, const BatchPodView* b) {
                  return std::tie(a->created, a->ns, a->name) <
                         std::tie(b->created, b->ns, b->name);
                });
      groups.push_back(&group);
    }
    std::sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) {
      const auto rank = [](const Group& group) {
        const BatchPodView& first = *group.waiting.front();
        return std::tuple(!group.is_running, first.created, std::string_view(first.ns),
                          std::string_view(first.name));
      };
      return rank(*a) < rank(*b);
    });
    return groups;
  }

  // Returns whether each of the JobSet's Jobs has all pods with which it starts. A Job in which a
  // pod has ended does not count: it may never have all of them again, since some indexes need not
  // run again.
  bool is_complete(const Group& group) const {
    const std::string& uid = jobs_.at(group.waiting.front()->controller_uid)->owner_uid;
    std::unordered_map<std::string_view, std::int32_t> pods;  // by the uid of their Job
    for (const BatchPodView* pod : group.waiting) ++pods[pod->controller_uid];
    std::map<std::string_view, std::int32_t> jobs;  // by their replicated job
    for (const JobView* job : observed_.jobs) {
      if (job->owner_uid != uid) continue;
      ++jobs[job->replicated_job];
      if (!is_to_run(*job) || job->succeeded > 0 || job->failed > 0) continue;
      const std::int32_t parallelism = job->parallelism.value_or(1);
      if (pods[job->uid] < std::min(parallelism, job->completions.value_or(parallelism)))
        return false;
    }
    return std::all_of(group.waiting.begin(), group.waiting.end(),
                       [&jobs](const BatchPodView* pod) {
                         return jobs[pod->replicated_job] >= pod->replicated_job_replicas;
                       });
  }

  void decide(Group& group, const std::vector<const BatchPodView*>& pods) {
    Load load;
    for (const BatchPodView* pod : pods) load.add(*pod, has_shared_ports());
    bool is_unresolvable = false;
    const std::vector<std::string> reasons = unfit_reasons(group, load, is_unresolvable);
    if (reasons.empty() && observed_.node) {
      for (const BatchPodView* pod : pods) bind(*pod);
      group.load.add(load);
      group.is_running = true;
      return used_.add(load);
    }
    const std::string message = explain(group, pods.size(), load, reasons, is_unresolvable);
    for (const BatchPodView* pod : pods) report(*pod, "Unschedulable", message);
  }

  // Returns why the load does not fit now. `is_unresolvable` (UnschedulableAndUnresolvable of
  // kube-scheduler) says that it would not fit on an empty node either.
  std::vector<std::string> unfit_reasons(const Group& group, const Load& load,
                                         bool& is_unresolvable) {
    std::set<std::string> reasons;
    if (!observed_.node) return {};
    if (observed_.node->is_unschedulable) reasons.insert("node(s) were unschedulable");
    is_unresolvable = observed_.node->is_unschedulable;
    const ResourceList& all = observed_.node->allocatable;
    for (const auto& [name, wanted] : load.requests) {
      // A node without a number of pods accepts any number.
      if (wanted.is_zero() || (name == "pods" && !all.contains(name))) continue;
      Quantity total = amount_of(used_.requests, name);
      total += wanted;
      if (!(amount_of(all, name) < total)) continue;
      reasons.insert(name == "pods" ? "Too many pods" : "Insufficient " + name);
      is_unresolvable = is_unresolvable || amount_of(all, name) < wanted;
    }
    if (!is_alone(group) && exceeds_assumed_cpus(load)) reasons.insert("Insufficient cpu");
    for (const std::int32_t port : load.ports)
      if (used_.ports.contains(port) && !group.load.ports.contains(port))
        reasons.insert("node(s) didn't have free ports for the requested pod ports");
    return {reasons.begin(), reasons.end()};
  }

  bool is_alone(const Group& group) const {
    return amount_of(used_.requests, "pods") == amount_of(group.load.requests, "pods");
  }

  bool exceeds_assumed_cpus(const Load& load) const {
    Quantity total = amount_of(used_.requests, "cpu");
    total += amount_of(load.requests, "cpu");
    total += Quantity::of(used_.assumed_cpus + load.assumed_cpus);
    return amount_of(observed_.node->allocatable, "cpu") < total;
  }

  // The text is that of pkg/scheduler/framework/types.go, FitError.
  std::string explain(const Group& group, std::size_t pods, const Load& load,
                      const std::vector<std::string>& reasons, bool is_unresolvable) const {
    if (!observed_.node) return "no nodes available to schedule pods";
    std::string text = "0/1 nodes are available: 1 ";
    for (std::size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? "" : ", 1 ") + reasons[i];
    text += fmt::format(". preemption: 0/1 nodes are available: 1 {}.",
                        is_unresolvable ? "Preemption is not helpful for scheduling"
                                        : "No preemption victims found for incoming pod");
    if (group.jobset.empty() || pods < 2) return text;
    text += fmt::format(" The {} pods of JobSet {} start together", pods, group.jobset);
    std::string_view separator = ": they request ";
    for (const auto& [name, wanted] : load.requests) {
      if (std::find(reasons.begin(), reasons.end(), "Insufficient " + name) == reasons.end())
        continue;
      text += fmt::format("{}{} {} of {}", std::exchange(separator, ", "), wanted.to_string(), name,
                          amount_of(observed_.node->allocatable, name).to_string());
    }
    return text + ".";
  }

  // Returns the conditions of the pod with another PodScheduled; null if it says so already.
  Json scheduled(const BatchPodView& pod, bool is_scheduled, std::string_view reason,
                 std::string_view message) const {
    const Json& known = find_condition(pod.conditions, "PodScheduled");
    const std::string_view status = is_scheduled ? "True" : "False";
    const bool is_same = known.get_string("status") == status;
    if (is_same && known.get_string("reason") == reason && known.get_string("message") == message)
      return nullptr;
    Json condition =
        Json::object({{"type", "PodScheduled"}, {"status", status}, {"lastProbeTime", nullptr}});
    condition.set("lastTransitionTime",
                  is_same ? known.get("lastTransitionTime") : Json(observed_.now.to_string()));
    if (!is_scheduled) condition.set("reason", reason).set("message", message);
    Json conditions = Json::array();
    if (pod.conditions.is_array())
      for (const Json& other : pod.conditions.as_array())
        if (other.get_string("type") != "PodScheduled") conditions.push_back(other);
    conditions.push_back(std::move(condition));
    return Json::object({{"status", Json::object({{"conditions", std::move(conditions)}})}});
  }

  void report(const BatchPodView& pod, std::string_view reason, const std::string& message) {
    Json status = scheduled(pod, false, reason, message);
    if (status.is_null()) return;
    PodPlan& made = plans_.emplace_back();
    made.pod = &pod;
    made.plan.status_patch = std::move(status);
    made.plan.events.push_back({"Warning", "FailedScheduling", message});
  }

  void bind(const BatchPodView& pod) {
    PodPlan& made = plans_.emplace_back();
    made.pod = &pod;
    if (Json status = scheduled(pod, true, {}, {}); !status.is_null())
      made.plan.status_patch = std::move(status);
    made.plan.status_time = kube::Plan::StatusTime::kBeforeActions;
    kube::Action& action = made.plan.actions.emplace_back();
    action.verb = kube::Action::Verb::kMergePatch;
    action.resource = kube::kPods;
    action.key = pod.key();
    action.body = Json::object({{"metadata", Json::object({{"uid", pod.uid}})},
                                {"spec", Json::object({{"nodeName", observed_.node->name}})}});
    kube::PlannedEvent& event = made.plan.events.emplace_back();
    event.reason = "Scheduled";
    event.message =
        fmt::format("Successfully assigned {} to {}", pod.key().to_string(), observed_.node->name);
    event.time = kube::PlannedEvent::Time::kAfterActions;
  }

  bool has_shared_ports() const { return observed_.node && observed_.node->has_shared_ports; }

  const SchedulerInput& observed_;
  std::unordered_map<std::string, const JobView*> jobs_;  // by uid
  Groups groups_;
  Load used_;
  std::vector<PodPlan> plans_;
};

}  // namespace

NodeView view_node(const Json& node) {
  NodeView view;
  const kube::ObjectMeta meta = kube::ObjectMeta::of(node);
  view.name = meta.name;
  for (const auto& [name, value] : node.get("status").get_object("allocatable"))
    if (auto amount = Quantity::read(value)) view.allocatable.emplace(name, *amount);
  view.is_unschedulable = node.get("spec").get_bool("unschedulable");
  const auto shared = meta.labels.find(kSharedPortsKey);
  view.has_shared_ports = shared != meta.labels.end() && shared->second == "true";
  return view;
}

std::vector<PodPlan> schedule(const SchedulerInput& observed) {
  return Scheduler(observed).run();
}

}  // namespace trainer::batch
