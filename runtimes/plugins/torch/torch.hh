// PyTorch's torchrun, and torchtune on top of it (trainer-contract 5.1).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Torch final : public Plugin {
 public:
  std::string_view source() const override { return "plugin torch"; }
  void enforce_ml_policy(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace trainer::pipeline
