// Where a training process reports its progress, and with which token (trainer-contract 5.10).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Progress final : public Plugin {
 public:
  std::string_view source() const override { return "plugin progress"; }
  void enforce_pod_spec(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
};

}  // namespace trainer::pipeline
