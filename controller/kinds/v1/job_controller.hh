// A reconcile of one V1 job is observe -> plan -> run. Every rule is in runtimes/v1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/v1job.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/decoded_objects.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "runtimes/v1/plan.hh"

namespace trainer::v1 {

// Each instance reconciles one kind.
class JobController final : public kube::Controller {
 public:
  using Stored = std::shared_ptr<const kube::StoredObject>;
  using Pod = std::shared_ptr<const PodView>;

  // `framework` outlives this.
  JobController(const kube::ControllerContext& context, const Framework& framework,
                Settings settings, std::shared_ptr<JobCensus> jobs);

  kube::Task<kube::Result<kube::Requeue>> reconcile(kube::ObjectKey key) override;
  void forget(const std::string& uid) override;

  void on_pod(const Pod& before, const Pod& after);
  void on_service(const Stored& before, const Stored& after);
  void on_pod_group(const Stored& before, const Stored& after);

 private:
  using DecodedJob = tl::expected<Job, kube::FieldErrors>;
  // A job's memory is kept between two reconciles.
  struct Memory {
    Dependents dependents;  // read by name, or written
    std::optional<std::unordered_set<std::uint64_t>> relayed;
    StatusExtensions extensions;
  };

  Observed observe(const Job& job, const Memory& memory) const;
  kube::Task<kube::Result<JobPlan>> make_plan(const Job& job, std::shared_ptr<Memory> memory);
  // Stores those of the written objects that are dependent objects.
  void remember(std::vector<kube::Action> written, Memory& memory) const;
  // Counts what the status says, once it is stored, and what was done, once all of it was.
  void count_status(const JobPlan::Counts& counts, const std::string& ns) const;
  void count_actions(const JobPlan::Counts& counts, const std::string& ns) const;
  void count(std::string_view what, std::int32_t times, const std::string& ns) const;
  void measure(const Job& job);

  const kube::ControllerContext context_;
  const Framework& framework_;
  const Settings settings_;
  const StoredCache& jobs_;
  const V1PodCache& pods_;
  const StoredCache* const services_;    // owners only; nullptr where jobs have none
  const StoredCache* const pod_groups_;  // nullptr without a gang scheduler
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_;  // by uid
  const std::shared_ptr<JobCensus> census_;
  const JobMetrics job_metrics_;
  std::unordered_map<std::string, JobRecord> records_;  // by uid, also of finished jobs
  kube::DecodedObjects<DecodedJob> decoded_;
};

}  // namespace trainer::v1
