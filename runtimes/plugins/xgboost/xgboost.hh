// XGBoost's tracker and workers (trainer-contract 5.5).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class XgBoost final : public Plugin {
 public:
  std::string_view source() const override { return "plugin xgboost"; }
  void enforce_ml_policy(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace trainer::pipeline
