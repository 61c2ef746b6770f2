// MPI over SSH: OpenMPI, Intel MPI and MPICH (trainer-contract 5.2; v1-contract 8.2 for the latter
// two).
#pragma once

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

class Mpi final : public Plugin {
 public:
  std::string_view source() const override { return "plugin mpi"; }
  void enforce_ml_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace trainer::pipeline
