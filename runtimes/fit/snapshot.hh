// The snapshot is what a plan compares a job with: nodes, the pods on them, and quotas. Equal pods
// are kept once. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "runtimes/fit/amounts.hh"
#include "runtimes/fit/kueue_state.hh"
#include "runtimes/fit/request.hh"

namespace trainer::fit {

// A job, or what else owns pods: a controller, or a single pod.
struct Holder {
  std::string kind;  // in lower case, such as "trainjob"
  std::string ns;
  std::string name;
  std::optional<kube::Time> since;  // its oldest pod

  std::string to_string() const { return kind + " " + ns + "/" + name; }
};

// These are pods that are alike for other pods.
struct PodGroup {
  std::string ns;
  kube::StringMap labels;  // those by which something chooses pods
  Amounts requests;
  std::vector<HostPort> ports;
  std::vector<PodTerm> anti_affinity;
  std::size_t holder = 0;  // in Snapshot::holders
  bool is_terminating = false;
  bool is_of_node = false;  // a DaemonSet or the kubelet made it: each node keeps it
};

struct Node {
  std::string name;
  kube::StringMap labels;
  std::vector<Taint> taints;
  bool is_unschedulable = false;
  Amounts allocatable;
  std::vector<std::pair<std::uint32_t, std::int32_t>> pods;  // a group, and how many of it
};

struct Quota {
  struct Scope {
    std::string name;
    std::string op;
    std::vector<std::string> values;
  };
  std::string name;
  kube::ResourceList hard;
  kube::ResourceList used;
  std::vector<Scope> scopes;
};

// The LocalQueue of the job, or its ClusterQueue, could not be read.
struct UnreadQueue {
  std::string kind;
  std::string message;      // the object, why, and a way out
  bool is_missing = false;  // it does not exist, so the job waits
};

struct Snapshot {
  ResourceTable resources;
  std::vector<Node> nodes;
  std::vector<PodGroup> groups;
  std::vector<Holder> holders;
  std::vector<Quota> quotas;
  std::optional<KueueState> kueue;  // set if the job has a queue
  std::int64_t waiting_pods = 0;    // pods without a node
  // The reason why these could not be read; "" if they were read.
  std::string nodes_unread;
  std::string pods_unread;
  std::string quotas_unread;
  std::optional<UnreadQueue> queue_unread;
};

// A pod with this label belongs to an object of this kind, whose name is the label's value.
struct JobLabel {
  std::string key;
  std::string kind;  // in lower case
};

// Reads objects as they arrive, and keeps no more of each than the snapshot has. Nodes are added
// before pods. Concurrency: one thread.
class SnapshotReader {
 public:
  SnapshotReader(ResourceTable resources, std::set<std::string, std::less<>> label_keys,
                 std::vector<JobLabel> job_labels);

  // The texts are JSON objects of a list; one that is no object of the kind is left out.
  void add_node(std::string_view text);
  void add_pod(std::string_view text);
  void add_quota(std::string_view text);

  Snapshot take();

 private:
  // A shape is what the spec of a pod asks for.
  struct Shape {
    Amounts requests;
    std::vector<HostPort> ports;
    kube::Json spec;  // null without terms of anti-affinity
  };
  std::size_t find_shape(std::string_view spec);
  std::size_t find_holder(const kube::ObjectMeta& pod);
  PodGroup make_group(const kube::ObjectMeta& pod, const Shape& shape) const;
  kube::StringMap chosen_labels(const kube::StringMap& labels) const;

  Snapshot snapshot_;
  std::set<std::string, std::less<>> label_keys_;
  std::vector<JobLabel> job_labels_;
  std::vector<Shape> shapes_;
  // Each is found by the text that it is made from.
  std::unordered_map<std::string, std::size_t> shape_of_;
  std::unordered_map<std::string, std::uint32_t> group_of_;
  std::unordered_map<std::string, std::size_t> holder_of_;
  std::unordered_map<std::string, std::size_t> node_of_;
};

}  // namespace trainer::fit
