// One MPIJob of v2beta1 and its children are in memory. This executes what plan() asks for, and a
// test plays the user, the kubelet and the Job controller.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kube/model/json.hh"
#include "runtimes/mpijob/plan.hh"
#include "tests/support/catch.hh"

namespace trainer::mpijob::test {

// A job `m` with two workers, changed by a merge patch in YAML ("spec: {slotsPerWorker: 4}").
kube::Json make_mpijob(std::string_view change = {});

class MPIJobWorld {
 public:
  explicit MPIJobWorld(kube::Json job = make_mpijob(), MPISettings settings = {});

  MPIJobPlan reconcile();
  void settle();  // reconciles until nothing changes
  void change(std::string_view merge_patch);
  void pod(const std::string& name, std::string_view phase, std::string_view reason = {},
           std::string_view message = {});
  void workers(std::string_view phase);
  // A pod of the launcher's Job, and the end of that Job: "Complete" or "Failed".
  void launcher_pod(const std::string& name, std::string_view phase, std::string_view reason = {},
                    std::string_view message = {});
  void launcher_ends(std::string_view type, std::string_view reason = {},
                     std::string_view message = {});

  bool has(const std::string& key) const { return objects.contains(key); }
  const kube::Json& at(const std::string& key) const& { return objects.at(key); }
  const kube::Json& at(const std::string& key) const&& = delete;  // it would not outlive the world
  // "Created Running!": in order, "!" where the status is False.
  std::string conditions() const;
  // "Worker 2 active 1 failed"
  std::string counters(std::string_view role) const;
  std::string pods() const;  // names, with spaces
  bool has_event(std::string_view text) const;

  std::map<std::string, kube::Json> objects;  // "Pod/m-worker-0"; the job is "MPIJob/m"
  std::vector<std::string> events;            // "Normal MPIJobCreated: ..."
  MPISettings settings;
  std::optional<kube::Refusal> refusal;
  kube::NamedObjects named;
  kube::Time now = kube::Time::from_seconds(1'800'000'000);
  int writes = 0;

 private:
  void run(const kube::Action& action);

  std::optional<std::unordered_set<std::string>> relayed_;
  int uid_ = 0;
};

}  // namespace trainer::mpijob::test
