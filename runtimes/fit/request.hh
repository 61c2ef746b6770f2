// The request is what the scheduler reads of a pod before it looks for a node. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/fit/selectors.hh"

namespace trainer::fit {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;

  static Taint read(const kube::Json& taint);
  std::string to_string() const;  // "key=value:NoSchedule"
  friend auto operator<=>(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key;
  std::string op;
  std::string value;
  std::string effect;

  static Toleration read(const kube::Json& toleration);
  bool tolerates(const Taint& taint) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct HostPort {
  std::string ip;  // "0.0.0.0" is every address of the node
  std::string protocol;
  std::int64_t port = 0;

  bool conflicts(const HostPort& other) const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// This is a constraint of topologySpreadConstraints with DoNotSchedule.
struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::int64_t min_domains = 1;
  std::string topology_key;
  LabelSelector selector;
  bool honors_affinity = true;
  bool honors_taints = false;
  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

// This is a required term of podAffinity or podAntiAffinity.
struct PodTerm {
  std::string topology_key;
  LabelSelector selector;
  std::set<std::string, std::less<>> namespaces;
  bool has_all_namespaces = false;

  bool matches(const std::string& ns, const kube::StringMap& labels) const;
  friend bool operator==(const PodTerm&, const PodTerm&) = default;
};

// `pod` has the members metadata.labels and spec, and is in namespace `ns`. Ports are those of
// containers and sidecars.
std::vector<HostPort> read_host_ports(const kube::Json& pod);
// `kind` is "podAffinity" or "podAntiAffinity". `undecided`, unless it is nullptr, gets a sentence
// about each term that cannot be read.
std::vector<PodTerm> read_pod_terms(const kube::Json& pod, std::string_view kind,
                                    const std::string& ns, std::vector<std::string>* undecided);

struct PodRequest {
  std::string ns;
  kube::StringMap labels;
  kube::ResourceList requests;
  kube::ResourceList limits;
  std::vector<Toleration> tolerations;
  kube::StringMap node_selector;
  // nullopt says that there is no required node affinity.
  std::optional<std::vector<NodeTerm>> node_terms;
  std::vector<HostPort> ports;
  std::vector<SpreadConstraint> spread;
  std::vector<PodTerm> affinity;
  std::vector<PodTerm> anti_affinity;
  std::string priority_class;
  bool has_deadline = false;  // activeDeadlineSeconds
  // One sentence about each thing that may keep the pod from a node, and is not computed here.
  std::vector<std::string> undecided;

  // `pod` is a pod or a pod template.
  static PodRequest read(const kube::Json& pod, const std::string& ns);
  bool tolerates(const Taint& taint) const;
  friend bool operator==(const PodRequest&, const PodRequest&) = default;
};

// Returns the keys of labels by which the pod's constraints choose pods.
void add_label_keys(const PodRequest& request, std::set<std::string, std::less<>>& keys);

}  // namespace trainer::fit
