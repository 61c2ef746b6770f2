// A launcher starts ranks on other nodes, and these need its variables. A process that is started
// by ssh has none of its container's. Hydra (Intel MPI, MPICH) passes on all variables of mpirun;
// OpenMPI passes on those of a list.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/name_index.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/converted_env.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/plugins/mpi/command_line.hh"
#include "runtimes/plugins/mpi/implementation.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer::pipeline {

namespace {

using mpi::CommandLine;

// The list may have this length with the values that are known: half of the length that Linux
// allows, since values of Secrets are added when the container starts.
constexpr std::size_t kMaxListBytes = 64UL * 1024;

// These fields of the downward API have the same value in all pods of an attempt.
bool is_same_everywhere(std::string_view field_path) {
  return field_path == "metadata.namespace" ||
         field_path == fmt::format("metadata.labels['{}']", jobset::kRestartAttemptKey);
}

bool is_optional(const kube::Json& source) {
  return std::ranges::any_of(source.as_object(), [](const auto& member) {
    return member.second.is_object() && member.second.get_bool("optional");
  });
}

// OpenMPI passes on its own variables by itself, and those of progress reports name files that no
// other pod has.
bool is_passed_over(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kPrefixes = {"OMPI_", "PMIX_", "PRTE_",
                                                                "KUBEFLOW_TRAINER_SERVER_"};
  return std::ranges::any_of(kPrefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// Returns the entry of a variable in OpenMPI's list, or "" if it cannot be in it. OpenMPI looks up
// an entry NAME, and then takes a value with "=" for NAME=VALUE. So the kubelet writes such a
// value, since it replaces $(NAME). In the list ";" ends an entry; `is_split` says whether a value
// may get one from a variable to which it refers.
std::string list_entry(const kube::Json& variable, bool is_split) {
  const std::string_view name = variable.get_string("name");
  if (name.find_first_of(";()$") != name.npos) return {};
  const std::string expanded = fmt::format("{0}=$({0})", name);
  const kube::Json& source = variable.get("valueFrom");
  if (source.is_object()) {
    // OpenMPI ends if a name is not set.
    if (is_optional(source) || source.find("resourceFieldRef") != nullptr) return {};
    const kube::Json* field = source.find("fieldRef");
    const bool is_of_pod = field != nullptr && !is_same_everywhere(field->get_string("fieldPath"));
    return is_of_pod ? std::string() : expanded;
  }
  const std::string_view value = variable.get_string("value");
  const bool refers = value.find("$(") != value.npos;
  if (!refers && value.find('=') == value.npos) return std::string(name);
  return value.find(';') == value.npos && !(refers && is_split) ? expanded : std::string();
}

struct List {
  std::string text;
  std::set<std::string_view, std::less<>> names;
};

// This is the launcher's final container, and the part of it that only the runtime sets.
struct Launcher {
  std::size_t job;
  kube::Json container;
  const kube::Json* of_runtime = nullptr;
};

std::optional<Launcher> launcher_of(const Draft& draft) {
  const auto job = draft.find_job(kLauncher);
  const kube::Json* container = job ? draft.container(*job, kNode) : nullptr;
  if (container == nullptr || !draft.find_job(kNode)) return std::nullopt;
  Launcher found{*job, *container};
  if (draft.is_trainer(*job)) {
    // In admission the job's own settings are not merged yet. If they are merged again, they are
    // the same.
    const Trainer& own = trainer_of(draft.job);
    kube::Json::Array variables;
    for (const kube::Json& variable : own.env) variables.push_back(converted_env(variable));
    kube::upsert_env(found.container, std::move(variables));
    const auto words = [](const std::vector<std::string>& all) {
      return kube::Json(kube::Json::Array(all.begin(), all.end()));
    };
    if (own.command) found.container.set("command", words(*own.command));
    if (own.args) found.container.set("args", words(*own.args));
  }
  for (const ReplicatedJob& replicated : replicated_jobs_of(draft.runtime))
    if (replicated.name == kLauncher)
      found.of_runtime =
          kube::find_container(replicated.template_.get_path({"spec", "template"}), kNode);
  return found;
}

// Returns the variables that the ranks should have. A launcher that is no node may have variables
// of its runtime that are for itself, such as one that hides devices.
std::vector<const kube::Json*> variables_of(const Draft& draft, const Launcher& launcher) {
  static const kube::Json::Array kNone;
  const auto& own = launcher.of_runtime == nullptr || draft.is_launcher_a_node()
                        ? kNone
                        : launcher.of_runtime->get_array("env");
  const kube::NameIndex index(own);
  std::vector<const kube::Json*> found;
  for (const kube::Json& variable : launcher.container.get_array("env")) {
    const auto at = index.find(variable.get_string("name"));
    if (!at || own[*at] != variable) found.push_back(&variable);
  }
  return found;
}

bool has_variables(const Draft& draft, const Launcher& launcher,
                   const mpi::Implementation& implementation) {
  const auto of_plugin = implementation.env_names();
  return std::ranges::any_of(
      variables_of(draft, launcher), [&of_plugin](const kube::Json* variable) {
        const std::string_view name = variable->get_string("name");
        return !is_passed_over(name) && std::ranges::find(of_plugin, name) == of_plugin.end();
      });
}

List make_list(const Draft& draft, const Launcher& launcher) {
  const bool is_split =
      std::ranges::any_of(launcher.container.get_array("env"), [](const kube::Json& variable) {
        return variable.get_string("value").find(';') != std::string_view::npos;
      });
  List list;
  std::size_t bytes = 0;
  for (const kube::Json* variable : variables_of(draft, launcher)) {
    const std::string_view name = variable->get_string("name");
    if (is_passed_over(name) || list.names.contains(name)) continue;
    const std::string entry = list_entry(*variable, is_split);
    const std::size_t more = entry.size() + 1 + variable->get_string("value").size();
    if (entry.empty() || bytes + more > kMaxListBytes) continue;
    bytes += more;
    list.names.insert(name);
    list.text += (list.text.empty() ? "" : ";") + entry;
  }
  return list;
}

const mpi::Implementation* implementation_of(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->mpi ? mpi::Implementation::of(*policy->mpi) : nullptr;
}

CommandLine command_line_of(const Launcher& launcher) {
  std::vector<std::string_view> words;
  for (const char* member : {"command", "args"})
    for (const kube::Json& word : launcher.container.get_array(member))
      if (word.is_string()) words.push_back(word.as_string());
  return mpi::read_command_line(words);
}

// Returns whether the job or its runtime says itself what OpenMPI passes on.
bool has_own_list(const kube::Json& container) {
  static constexpr std::array<std::string_view, 3> kNames = {"OMPI_MCA_mca_base_env_list",
                                                             "OMPI_MCA_mca_base_env_list_delimiter",
                                                             "OMPI_MCA_mca_base_envar_file_prefix"};
  return std::ranges::any_of(kNames, [&container](std::string_view name) {
    return kube::find_env(container, name) != nullptr;
  });
}

class MpiEnvironment final : public Plugin {
 public:
  std::string_view source() const override { return "plugin mpi"; }
  bool is_active(const Draft& draft) const override { return implementation_of(draft) != nullptr; }
  void enforce_pod_spec(Draft& draft) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

// Returns the names of spec.trainer.env that do not reach the ranks of other nodes, with commas.
std::string names_left_behind(const Draft& draft, const List& list, const CommandLine& line) {
  std::string names;
  std::set<std::string_view> seen;
  for (const kube::Json& variable : trainer_of(draft.job).env) {
    const std::string_view name = variable.get_string("name");
    if (is_passed_over(name) || list.names.contains(name) || line.exported.contains(name)) continue;
    if (seen.insert(name).second) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return keep_head(names, 300);
}

}  // namespace

void MpiEnvironment::enforce_pod_spec(Draft& draft) const {
  const mpi::Implementation& implementation = *implementation_of(draft);
  const auto launcher = launcher_of(draft);
  if (!launcher) return;
  const std::string_view name = implementation.passing_variable();
  const kube::Json* stored = draft.stored_container(launcher->job);
  // No update changes the environment of a JobSet that an earlier version made.
  if (stored != nullptr && kube::find_env(*stored, name) == nullptr) return;
  if (kube::find_env(launcher->container, name) != nullptr) return;
  std::string value;
  if (!implementation.passes_list())
    value = has_variables(draft, *launcher, implementation) ? "all" : "";
  else if (!has_own_list(launcher->container) &&
           command_line_of(*launcher).start == CommandLine::Start::kMpirun)
    value = make_list(draft, *launcher).text;
  if (value.empty()) return;
  // The variable comes last, since the kubelet replaces $(NAME) only by variables that come before.
  draft.edit(launcher->job, kNode, source())->env(name, value);
}

void MpiEnvironment::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  if (trainer_of(draft.job).env.empty() || !implementation_of(draft)->passes_list()) return;
  const auto launcher = launcher_of(draft);
  if (!launcher || has_own_list(launcher->container)) return;
  const CommandLine line = command_line_of(*launcher);
  const bool is_listed = line.start == CommandLine::Start::kMpirun;
  const List list = is_listed ? make_list(draft, *launcher) : List();
  const std::string names = names_left_behind(draft, list, line);
  if (names.empty()) return;
  const std::string_view why =
      is_listed ? "OpenMPI's list of variables cannot hold a value with both \"=\" and \";\", an "
                  "optional source, a field of the pod, or 64 KiB; start the ranks by a script "
                  "that sets them"
      : line.start == CommandLine::Start::kExports
          ? "the command itself says which variables mpirun passes on, and OpenMPI takes no list "
            "besides; add -x NAME for each"
          : "the command starts mpirun out of sight, and OpenMPI 4 refuses a list of variables "
            "beside -x: let mpirun get -x NAME for each, begin the command with mpirun, or set "
            "OMPI_MCA_mca_base_env_list=NAME;NAME there";
  warnings.push_back(
      fmt::format("spec.trainer.env: {}: not passed to the ranks of other nodes by the "
                  "controller, because {}",
                  names, why));
}

std::unique_ptr<const Plugin> make_mpi_environment() {
  return std::make_unique<MpiEnvironment>();
}

}  // namespace trainer::pipeline
