// A namespace with MPIJobs of v2beta1, the Jobs of their launchers and all pods is in memory,
// without a node. This executes what the plans for MPIJobs and for Jobs ask for by the API server's
// rules.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "kube/model/json.hh"
#include "runtimes/batch/plan.hh"
#include "runtimes/mpijob/plan.hh"

namespace trainer::mpijob::test {

class Replay {
 public:
  Replay(std::string ns, MPISettings settings);

  // Returns whether the schema accepts the object. It is created, or replaces the stored one.
  bool apply(kube::Json object);
  bool patch(const std::string& key, const kube::Json& body, bool is_merge);
  void remove(const std::string& key);
  void advance(int seconds);

  // Returns the key of the newest object of this name, which may end in "*"; "" if there is none.
  std::string find(const std::string& key) const;
  // Pods of a Job are named by a number, "m-launcher-<0>".
  std::map<std::string, kube::Json> shown(const std::string& kind) const;

  std::map<std::string, kube::Json> objects;  // "Pod/m-worker-0"
  std::set<std::string> events;               // "MPIJob m: Normal MPIJobCreated: ..."

 private:
  struct Memory {
    std::optional<std::unordered_set<std::string>> relayed;
    std::optional<kube::Refusal> refusal;
    batch::Backoff backoff;
  };
  void settle();
  void reconcile_mpijob(const std::string& key);
  void reconcile_job(const std::string& key);
  void run(const kube::Plan& plan, const std::string& key);
  bool act(const kube::Action& action, Memory& memory);
  void collect();
  kube::Json child(const kube::Resource& resource, const std::string& name,
                   const std::string& uid) const;

  std::string ns_;
  MPISettings settings_;
  kube::Time now_ = kube::Time::from_seconds(1'800'000'000);
  std::map<std::string, Memory> memory_;
  kube::NamedObjects none_;
  int version_ = 0;
};

}  // namespace trainer::mpijob::test
