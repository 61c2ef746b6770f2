// observe -> plan -> run for one V1 job. Every rule is in runtimes/v1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "api/v1job.hh"
#include "controller/kinds/common/collections.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/planned_controller.hh"
#include "runtimes/v1/plan.hh"

namespace trainer::v1 {

// Kept of one job between its reconciles.
struct JobMemory : kube::ObjectMemory {
  std::optional<std::unordered_set<std::uint64_t>> relayed;  // the value in the last plan
  StatusExtensions extensions;                               // the value in the last plan
  JobRecord record;                                          // the metrics read it
};

using DecodedJob = tl::expected<V1Job, kube::FieldErrors>;

// Each instance reconciles one kind.
class JobController final : public kube::PlannedController<DecodedJob, JobMemory, V1JobPlan> {
 public:
  using Pod = std::shared_ptr<const V1PodView>;

  // `framework` outlives this.
  JobController(const kube::ControllerContext& context, const Framework& framework,
                Settings settings, std::shared_ptr<JobCensus> jobs);

  void on_pod(const Pod& before, const Pod& after);
  void on_service(const Stored& before, const Stored& after);

 private:
  const kube::FieldErrors* errors_of(const DecodedJob& decoded) const override {
    return decoded ? nullptr : &decoded.error();
  }
  bool is_reconciled(const kube::StoredObject& stored) const override;
  kube::Task<V1JobPlan> plan(const Subject& subject) override;
  void measure(const Subject& subject) override;
  void on_status(const Subject& subject, const V1JobPlan& plan) override;
  void on_done(const Subject& subject, const V1JobPlan& plan) override;
  void keep(const Subject& subject, const kube::NamedObject& named, kube::Json object,
            Origin origin, kube::ReadObject& kept) override;

  Observed observe(const V1Job& job, const JobMemory& memory) const;
  void count(std::string_view what, std::int32_t times, const std::string& ns) const;

  const Framework& framework_;
  const Settings settings_;
  const V1PodCache& pods_;
  const StoredCache* const services_;    // owners only; nullptr where jobs have none
  const StoredCache* const pod_groups_;  // nullptr without a gang scheduler
  const std::shared_ptr<JobCensus> census_;
  const JobMetrics job_metrics_;
};

}  // namespace trainer::v1
