// JAX's distributed initialisation (trainer-contract 5.4).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Jax final : public Plugin {
 public:
  std::string_view source() const override { return "plugin jax"; }
  void enforce_ml_policy(Draft& draft) const override;
};

}  // namespace trainer::pipeline
