// MPI implementations differ in what they expect of a launcher's environment and hostfile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/runtime.hh"

namespace trainer::pipeline::mpi {

inline constexpr std::string_view kHostfileVolume = "mpi-hostfile";
inline constexpr std::string_view kHostfilePath = "/etc/mpi/hostfile";

class Implementation {
 public:
  // Returns the one of mpiImplementation: "OpenMPI" (also empty or unset), "Intel" or "MPICH";
  // nullptr for anything else.
  static const Implementation* of(const MpiPolicy& policy);

  std::string_view name() const { return name_; }
  // Returns name and value of each variable that the launcher gets, in order.
  std::vector<std::pair<std::string, std::string>> env(std::int64_t slots) const;
  std::vector<std::string_view> env_names() const;
  // Returns the variable that says which others ranks on other nodes get: a list of them, or "all".
  std::string_view passing_variable() const { return passing_variable_; }
  bool passes_list() const { return passes_list_; }
  // Returns one line for each endpoint, each ending in a newline.
  std::string hostfile(const std::vector<std::string>& endpoints, std::int64_t slots) const;

 private:
  enum class Value { kHostfile, kTrue, kSlots, kSshArgs };
  struct Variable {
    std::string_view name;
    Value value;
  };

  Implementation(std::string_view name, std::string_view slots_separator,
                 std::string_view passing_variable, bool passes_list,
                 std::vector<Variable> variables)
      : name_(name),
        slots_separator_(slots_separator),
        passing_variable_(passing_variable),
        passes_list_(passes_list),
        variables_(std::move(variables)) {}
  static const std::vector<Implementation>& all();

  std::string_view name_;
  std::string_view slots_separator_;  // between a host and its slots
  std::string_view passing_variable_;
  bool passes_list_;
  std::vector<Variable> variables_;
};

}  // namespace trainer::pipeline::mpi
