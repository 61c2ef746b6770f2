// Jobs whose framework needs nothing but a number of nodes; also the base of xgboost and flux
// (trainer-contract 5.3).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class PlainMl final : public Plugin {
 public:
  std::string_view source() const override { return "plugin plainml"; }
  void enforce_ml_policy(Draft& draft) const override;
};

}  // namespace trainer::pipeline
