// The answer of `trainer plan` as a text of one screen, and as a value. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "runtimes/fit/plan_fit.hh"

namespace trainer {

// `title` names the job: "TrainJob team-a/llama".
std::string plan_text(const fit::PlanAnswer& answer, std::string_view title, kube::Time now);
kube::Json plan_json(const fit::PlanAnswer& answer, std::string_view title);

}  // namespace trainer
