// Objects of Kueue are described in YAML, and a job is compared with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtimes/fit/kueue_quota.hh"
#include "tests/unit/fit/cluster.hh"

namespace trainer::fit::test {

// Kueue has the flavors a and b, whose nodes have the label pool=a and pool=b. The job is in the
// ClusterQueue "cq".
class TestKueue {
 public:
  TestKueue();
  // `spec` and `status` are the members of a ClusterQueue, in YAML flow. It takes jobs of all
  // namespaces.
  TestKueue& queue(const std::string& name, const std::string& spec,
                   const std::string& status = "");
  TestKueue& cohort(const std::string& name, const std::string& spec);
  TestKueue& flavor(const std::string& object);
  // Adds a workload of the ClusterQueue that has reserved this much of flavor a, or waits for it.
  // A later one is younger.
  TestKueue& reserved(const std::string& queue, const std::string& name, int gpus,
                      int priority = 0);
  TestKueue& waiting(const std::string& queue, const std::string& name, int gpus, int priority = 0);

  KueueState state;  // before the objects are read; ask() reads them

  QueueAnswer ask(const std::vector<kube::Json>& objects) const;
  // Asks for so many devices nvidia.com/gpu in pods of one each.
  QueueAnswer ask(int gpus) const;
  Verdict verdict(int gpus) const { return ask(gpus).verdict; }

 private:
  TestKueue& workload(const std::string& queue, const std::string& name, int gpus, int priority,
                      const std::string& status);
  std::vector<kube::Json> queues_, cohorts_, flavors_, workloads_;
};

// Returns a flavor of a group, with the quota of nvidia.com/gpu and its limits.
std::string quota(const std::string& flavor, int nominal, const std::string& more = "");
std::string group(const std::string& flavors);
std::string reservation(const std::string& flavor, int total);

}  // namespace trainer::fit::test
