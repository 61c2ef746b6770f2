// observe -> plan -> run for one MPIJob of v2beta1. Every rule is in runtimes/mpijob.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "api/v1job.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/planned_controller.hh"
#include "runtimes/mpijob/plan.hh"

namespace trainer::mpijob {

// Kept of one job between its reconciles.
struct MPIJobMemory : kube::ObjectMemory {
  std::optional<std::unordered_set<std::string>> relayed;  // the value in the last plan
  JobRecord record;                                        // the metrics read it
};

using DecodedMPIJob = tl::expected<v1::V1Job, kube::FieldErrors>;

// The Jobs, Services, ConfigMaps and Secrets of MPIJobs, and some others. mpi-operator labels its
// objects so.
inline kube::Collection labelled(const kube::Resource& resource) {
  return {resource, "app"};
}

class MPIJobController final
    : public kube::PlannedController<DecodedMPIJob, MPIJobMemory, MPIJobPlan> {
 public:
  using Pod = std::shared_ptr<const v1::V1PodView>;
  struct Options {
    MPISettings settings;
    std::shared_ptr<JobCensus> jobs;
    // The namespaces in which mpi-operator's Lease is trusted, besides that of its manifests.
    std::set<std::string, std::less<>> upstream_namespaces;
    // False without a right to read Leases of other namespaces: then no Lease is looked for.
    bool follows_upstream = true;
  };

  MPIJobController(const kube::ControllerContext& context, Options options);

  bool is_ready() const override { return is_upstream_known_; }
  std::vector<kube::BackgroundTask> tasks() override;

  void on_pod(const Pod& before, const Pod& after);
  void on_object(const Stored& before, const Stored& after);

 private:
  bool is_reconciled(const kube::StoredObject& stored) const override;
  const kube::FieldErrors* errors_of(const DecodedMPIJob& decoded) const override {
    return decoded ? nullptr : &decoded.error();
  }
  kube::Task<MPIJobPlan> plan(const Subject& subject) override;
  kube::Result<void> complete(const Subject& subject, MPIJobPlan& plan) override;
  void measure(const Subject& subject) override;
  void on_status(const Subject& subject, const MPIJobPlan& plan) override;

  void upstream_changed(bool is_present);
  void count(std::string_view what, bool is_counted) const;

  const Options options_;
  const V1PodCache& pods_;
  const StoredCache& launchers_;
  const StoredCache& services_;
  const StoredCache& config_maps_;
  const StoredCache& secrets_;
  const StoredCache* const pod_groups_;  // nullptr without a gang scheduler
  const JobMetrics job_metrics_;
  bool is_upstream_known_;
  bool is_upstream_present_ = false;  // mpi-operator runs: the jobs are left to it
};

}  // namespace trainer::mpijob
