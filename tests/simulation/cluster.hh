// These components run behind the API server: the Job controller, with the rules of runtimes/batch,
// the kubelet and the garbage collector.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "kube/model/plan.hh"
#include "kube/server/collector.hh"
#include "runtimes/batch/plan.hh"
#include "tests/simulation/api_store.hh"
#include "tests/simulation/chance.hh"

namespace trainer::simulation {

// This is what happens to one pod.
struct Fate {
  milliseconds until_running{500};
  milliseconds until_ready{200};
  // The time from the start of its run; nullopt: it runs until it is killed.
  std::optional<milliseconds> until_end;
  int exit_code = 0;
};

// Follows every change of the store and answers, after a while, with changes of its own. These
// parts never fail: only the controller has to handle failures.
class Cluster {
 public:
  // Decides about a pod that was just created; `failures` is how many of its Job have failed.
  using Decide = std::function<Fate(const kube::Json& pod, int failures)>;
  Cluster(Timeline& timeline, ApiStore& store, Chance chance, Decide decide);

 private:
  void on_change(const Change& change);
  // Each key is worked on once, however often it was enqueued.
  void ask_for_sync(const kube::ObjectKey& job);
  void ask_for_collection();

  void sync_job(const kube::ObjectKey& key);
  void run(const kube::ObjectKey& job, kube::Plan plan);
  void act(const kube::Action& action);
  void create_pod(const kube::Action& action);

  void start_pod(const kube::ObjectKey& key, const std::string& uid, Fate fate);
  void end_pod(const kube::ObjectKey& key, const std::string& uid, int exit_code);
  void kill_pod(const kube::ObjectKey& key, const std::string& uid);
  Object live_pod(const kube::ObjectKey& key, const std::string& uid) const;

  Timeline& timeline_;
  ApiStore& store_;
  kube::server::Collector collector_;
  Chance chance_;
  Decide decide_;
  std::set<kube::ObjectKey> asked_;
  bool is_collection_asked_ = false;
  int named_ = 0;
  std::map<std::string, batch::Backoff> backoffs_;  // by Job uid
};

}  // namespace trainer::simulation
