// A Flux instance that spans the nodes of a job (trainer-contract 5.6).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Flux final : public Plugin {
 public:
  std::string_view source() const override { return "plugin flux"; }
  void enforce_ml_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace trainer::pipeline
