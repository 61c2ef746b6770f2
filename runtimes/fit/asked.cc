#include "runtimes/fit/asked.hh"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/views/labels.hh"

namespace trainer::fit {
namespace {

using kube::Json;

constexpr std::string_view kJobNameLabel = "batch.kubernetes.io/job-name";
constexpr std::string_view kOldJobNameLabel = "job-name";

struct Stages {
  std::int64_t first = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

// A replicated job may depend on those before it in the list.
void add_stages(const Json& jobset, std::map<std::string, Stages, std::less<>>& stages) {
  for (const Json& job : jobset.get("spec").get_array("replicatedJobs")) {
    Stages its;
    for (const Json& depends : job.get_array("dependsOn")) {
      const auto before = stages.find(depends.get_string("name"));
      if (before == stages.end()) continue;
      const bool waits_for_end = depends.get_string("status") == "Complete";
      its.first = std::max(its.first, before->second.first + (waits_for_end ? 1 : 0));
    }
    for (const Json& depends : job.get_array("dependsOn")) {
      const auto before = stages.find(depends.get_string("name"));
      if (before != stages.end() && depends.get_string("status") == "Complete")
        before->second.last = std::min(before->second.last, its.first - 1);
    }
    stages[std::string(job.get_string("name"))] = its;
  }
}

std::string role_of(const kube::ObjectMeta& meta, const kube::StringMap& labels) {
  for (const std::string_view key : {jobset::kReplicatedJobNameKey, kV1ReplicaTypeKey})
    if (const auto at = labels.find(key); at != labels.end()) return at->second;
  return meta.name;
}

class Reader {
 public:
  explicit Reader(const std::vector<Json>& running) {
    asked_.is_admitted = !running.empty();
    for (const Json& pod : running) {
      const bool is_done = pod.get("status").get_string("phase") == "Succeeded";
      const bool has_node = !pod.get("spec").get_string("nodeName").empty();
      if (!is_done && kube::is_pod_over(pod)) continue;
      const auto meta = kube::ObjectMeta::of(pod);
      const bool is_bound = is_done || has_node;
      (is_bound ? bound_pods_ : made_pods_).insert(meta.name);
      const auto job = meta.labels.find(kJobNameLabel);
      if (job != meta.labels.end()) ++(is_bound ? bound_of_job_ : made_of_job_)[job->second];
    }
  }

  void add(const Json& object) {
    const std::string_view kind = object.get_string("kind");
    const auto meta = kube::ObjectMeta::of(object);
    if (const auto at = meta.labels.find(kQueueLabel); at != meta.labels.end())
      asked_.queue = at->second;
    if (kind == "PodGroup")
      asked_.gang_minimum = std::max(asked_.gang_minimum, object.get("spec").get_int("minMember"));
    if (kind == jobset::kKind) add_stages(object, stages_);
    if (kind == "Job") add_job(object, meta);
    if (kind == "Pod")
      add_pods(object, meta, bound_pods_.contains(meta.name) ? 0 : 1,
               made_pods_.contains(meta.name) ? 1 : 0);
  }

  Asked take() {
    std::int64_t last = 0;
    for (const Role& role : asked_.roles) last = std::max(last, role.first_stage);
    asked_.stages = last + 1;
    for (Role& role : asked_.roles) role.last_stage = std::min(role.last_stage, last);
    return std::move(asked_);
  }

 private:
  void add_job(const Json& object, const kube::ObjectMeta& meta) {
    const auto bound = bound_of_job_.find(meta.name);
    const auto made = made_of_job_.find(meta.name);
    if (bound == bound_of_job_.end() && made == made_of_job_.end()) ++asked_.jobs;
    const Json& spec = object.get("spec");
    Json pod = spec.get("template");
    Json& labels = pod["metadata"]["labels"];
    for (const std::string_view key : {kJobNameLabel, kOldJobNameLabel}) labels.set(key, meta.name);
    const std::int64_t parallelism = spec.get_int("parallelism", 1);
    const std::int64_t pods = std::min(parallelism, spec.get_int("completions", parallelism));
    add_pods(pod, meta, pods - (bound == bound_of_job_.end() ? 0 : bound->second),
             made == made_of_job_.end() ? 0 : made->second);
  }

  void add_pods(const Json& pod, const kube::ObjectMeta& meta, std::int64_t count,
                std::int64_t made) {
    asked_.ns = meta.ns;
    Role role;
    role.pod = PodRequest::read(pod, meta.ns);
    role.name = role_of(meta, role.pod.labels);
    role.pods = std::max<std::int64_t>(count, 0);
    role.made = std::min(made, role.pods);
    if (const auto at = stages_.find(role.name); at != stages_.end()) {
      role.first_stage = at->second.first;
      role.last_stage = at->second.last;
    } else {
      role.last_stage = Stages().last;
    }
    std::set<std::string, std::less<>> keys;
    add_label_keys(role.pod, keys);
    const auto same = std::ranges::find_if(
        asked_.roles, [&](const Role& each) { return are_alike(each, role, keys); });
    if (same == asked_.roles.end()) {
      asked_.roles.push_back(std::move(role));
    } else {
      same->pods = kube::saturating_add(same->pods, role.pods);
      same->made = kube::saturating_add(same->made, role.made);
    }
  }

  // Pods of one role differ in labels with their index, by which no constraint of theirs chooses.
  static bool are_alike(const Role& one, const Role& other,
                        const std::set<std::string, std::less<>>& keys) {
    if (one.name != other.name) return false;
    PodRequest request = other.pod;
    for (const std::string& key : keys) {
      const auto a = one.pod.labels.find(key);
      const auto b = request.labels.find(key);
      const bool has_a = a != one.pod.labels.end();
      if (has_a != (b != request.labels.end()) || (has_a && a->second != b->second)) return false;
    }
    request.labels = one.pod.labels;
    return request == one.pod;
  }

  Asked asked_;
  std::map<std::string, Stages, std::less<>> stages_;  // by role
  std::set<std::string, std::less<>> bound_pods_, made_pods_;
  std::map<std::string, std::int64_t, std::less<>> bound_of_job_, made_of_job_;
};

}  // namespace

std::int64_t Asked::pods_of_stage(std::int64_t stage) const {
  std::int64_t pods = 0;
  for (const Role& role : roles)
    if (role.first_stage <= stage && stage <= role.last_stage)
      pods = kube::saturating_add(pods, role.pods);
  return pods;
}

Asked read_asked(const std::vector<Json>& objects, const std::vector<Json>& running) {
  Reader reader(running);
  for (const Json& object : objects) reader.add(object);
  return reader.take();
}

std::vector<std::string> resources_of(const Asked& asked) {
  std::set<std::string, std::less<>> names;
  for (const Role& role : asked.roles)
    for (const auto& [name, amount] : role.pod.requests)
      if (!amount.is_zero()) names.insert(name);
  return {names.begin(), names.end()};
}

std::set<std::string, std::less<>> label_keys_of(const Asked& asked) {
  std::set<std::string, std::less<>> keys;
  for (const Role& role : asked.roles) add_label_keys(role.pod, keys);
  return keys;
}

}  // namespace trainer::fit
