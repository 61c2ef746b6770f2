// Gangs for Volcano (scheduling-contract 3).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Volcano final : public Plugin {
 public:
  std::string_view source() const override { return "plugin volcano"; }
  void enforce_pod_group_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace trainer::pipeline
