#include "runtimes/plugins/mpi/implementation.hh"

#include <fmt/format.h>

#include <algorithm>

namespace trainer::pipeline::mpi {

const std::vector<Implementation>& Implementation::all() {
  // OpenMPI gets upstream's settings. Intel and MPICH get those of kubeflow/mpi-operator, except
  // for MPICH's arguments of ssh: there they are in HYDRA_LAUNCH_EXTRA_ARGS, which no Hydra reads.
  static const std::vector<Implementation> kAll = {
      Implementation("OpenMPI", " slots=", "OMPI_MCA_mca_base_env_list", true,
                     {{"OMPI_MCA_orte_default_hostfile", Value::kHostfile},
                      {"OMPI_MCA_orte_keep_fqdn_hostnames", Value::kTrue},
                      {"OMPI_MCA_orte_set_default_slots", Value::kSlots},
                      {"OMPI_MCA_plm_rsh_args", Value::kSshArgs}}),
      Implementation("Intel", ":", "I_MPI_HYDRA_ENV", false,
                     {{"I_MPI_HYDRA_HOST_FILE", Value::kHostfile},
                      {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", Value::kSshArgs},
                      {"I_MPI_PERHOST", Value::kSlots}}),
      Implementation(
          "MPICH", ":", "HYDRA_ENV", false,
          {{"HYDRA_HOST_FILE", Value::kHostfile}, {"HYDRA_LAUNCHER_EXTRA_ARGS", Value::kSshArgs}}),
  };
  return kAll;
}

const Implementation* Implementation::of(const MpiPolicy& policy) {
  const auto& supported = all();
  const std::string name = policy.mpiImplementation.value_or("");
  if (name.empty()) return &supported.front();
  const auto found = std::find_if(supported.begin(), supported.end(),
                                  [&name](const auto& one) { return one.name_ == name; });
  return found == supported.end() ? nullptr : &*found;
}

std::vector<std::pair<std::string, std::string>> Implementation::env(std::int64_t slots) const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Variable& variable : variables_) {
    std::string value;
    switch (variable.value) {
      case Value::kHostfile:
        value = kHostfilePath;
        break;
      case Value::kTrue:
        value = "true";
        break;
      case Value::kSlots:
        value = std::to_string(slots);
        break;
      case Value::kSshArgs:
        value = "-o ConnectionAttempts=10";  // a pod may run for a moment before its sshd listens
        break;
    }
    out.emplace_back(variable.name, std::move(value));
  }
  return out;
}

std::vector<std::string_view> Implementation::env_names() const {
  std::vector<std::string_view> names;
  for (const Variable& variable : variables_) names.push_back(variable.name);
  return names;
}

std::string Implementation::hostfile(const std::vector<std::string>& endpoints,
                                     std::int64_t slots) const {
  std::string text;
  for (const std::string& endpoint : endpoints)
    text += fmt::format("{}{}{}\n", endpoint, slots_separator_, slots);
  return text;
}

}  // namespace trainer::pipeline::mpi
