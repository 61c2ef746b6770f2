// A ResourceQuota is compared with what a job asks for, as its admission plugin and its controller
// count (pkg/quota/v1/evaluator/core/pods.go). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtimes/fit/plan_fit.hh"

namespace trainer::fit {

struct QuotaReason {
  Verdict verdict = Verdict::kWaits;
  Reason reason;
};

// Returns one item for each resource of a quota that the pods of a stage would exceed.
std::vector<QuotaReason> resource_quota(const Asked& asked, std::int64_t stage, const Quota& quota);

}  // namespace trainer::fit
