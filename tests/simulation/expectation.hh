// A run must end like this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/simulation/api_store.hh"
#include "tests/simulation/script.hh"

namespace trainer::simulation {

// Remembers the last state of every job, so that those which are removed after their end can be
// checked too.
class Expectation {
 public:
  Expectation(ApiStore& store, const Script& script);
  // Returns what a job still lacks, as a sentence; nullopt if everything agrees with the script.
  std::optional<std::string> missing() const;

 private:
  using Missing = std::optional<std::string>;
  Missing missing_of(const Lineage& lineage) const;
  Missing missing_end(const Lineage& lineage, const kube::Json& object) const;
  Missing missing_running(const Lineage& lineage, const kube::Json& object) const;
  Missing missing_suspended(const Lineage& lineage, const kube::Json& object) const;
  Missing wrong_restarts(const Lineage& lineage, const kube::Json& object) const;
  Missing wrong_size(const Lineage& lineage, const kube::Json& trainjob) const;
  Missing stale_mirror(const Lineage& lineage, const kube::Json& trainjob) const;
  Missing orphan() const;
  int live_pods(const Lineage& lineage, std::string_view part = {}) const;  // "": of all parts

  ApiStore& store_;
  const Script& script_;
  std::map<kube::ObjectKey, Object> last_;
};

}  // namespace trainer::simulation
