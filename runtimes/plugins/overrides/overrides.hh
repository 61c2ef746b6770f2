// What spec.trainer says about the trainer's container (trainer-contract 4.3 and 5.9).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class TrainerOverrides final : public Plugin {
 public:
  std::string_view source() const override { return "spec.trainer"; }
  void enforce_pod_spec(Draft& draft) const override;
};

}  // namespace trainer::pipeline
