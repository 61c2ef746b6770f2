// Gangs for the coscheduling plugin of kubernetes-sigs/scheduler-plugins (scheduling-contract 4).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Coscheduling final : public Plugin {
 public:
  std::string_view source() const override { return "plugin coscheduling"; }
  void enforce_pod_group_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
};

}  // namespace trainer::pipeline
