// Datasets and models fetched before the training (trainer-contract 4.3 and 6.3, rules 4 to 9).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Initializers final : public Plugin {
 public:
  std::string_view source() const override { return "spec.initializer"; }
  void enforce_pod_spec(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace trainer::pipeline
