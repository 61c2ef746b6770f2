// The subcommands, without their parsing: each takes its options as a struct and returns an exit
// code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/cli.hh"
#include "controller/cli/console.hh"
#include "controller/registration/kind_registration.hh"

namespace trainer {

enum class OutputFormat { kText, kYaml, kJson };

// Which cluster, by the same flags as kubectl's.
struct ClusterOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: the context's
};

int run_version(OutputFormat format, Console& console);

struct CrdsOptions {
  std::string option;               // "": those of every installation
  std::vector<std::string> except;  // names
  bool is_applied = false;          // into the cluster, instead of printed
  ClusterOptions cluster;
};
// The CustomResourceDefinitions to install, or those of an option, as YAML documents.
int run_crds(const CrdsOptions& options, Console& console);

// The ClusterRole of the controller, with the rules of all kinds, or that of an option, as YAML;
// with option "namespaced" a Role.
int run_rbac(const std::string& option, Console& console);

struct RuntimesOptions {
  std::vector<std::string> names;  // empty: all
  bool is_list = false;            // names and frameworks only
  // "NAME=IMAGE": what containers with this image get, whatever its tag.
  std::vector<std::string> images;
  std::vector<std::string> labels;  // "KEY=VALUE", of each runtime
  bool is_applied = false;          // into the cluster, instead of printed
  // Deletes runtimes that this command has applied earlier, that are not among these names, and
  // that no unfinished TrainJob uses. Without is_applied the names do not matter.
  bool removes_unused = false;
  ClusterOptions cluster;
};
int run_runtimes(const RuntimesOptions& options, Console& console);

struct CheckOptions {
  ClusterOptions cluster;
  std::string lease;               // empty: it is not checked
  bool has_webhooks = true;        // else admission is not checked
  std::chrono::seconds limit{30};  // for how long what is wrong is tried again
};
// Whether an installation works: its kinds are served, a leader renews the Lease, admission
// answers.
int run_check(const CheckOptions& options, Console& console);

struct RenderOptions {
  std::vector<std::string> files;  // "-": standard input
  OutputFormat format = OutputFormat::kYaml;
  bool is_explained = false;  // say where each value came from
  bool has_jobs = false;      // expand JobSets into Jobs and Services
  std::string config_file;    // of the controller; empty: all defaults
  std::string feature_gates;  // win over the file
};
int run_render(const RenderOptions& options, const Registry& registry, Console& console);

struct WhyOptions {
  ClusterOptions cluster;
  std::vector<std::string> target;  // as find_target() reads it
  OutputFormat format = OutputFormat::kText;
};
int run_why(const WhyOptions& options, const Registry& registry, Console& console);

struct LogsOptions {
  ClusterOptions cluster;
  std::vector<std::string> target;
  bool is_followed = false;
  std::optional<std::int32_t> node;  // only this node's pods
  std::int64_t tail = -1;            // lines of each pod to begin with; -1: all
  std::string since;                 // a duration; empty: from the start
  bool has_timestamps = false;
  bool ends_when_suspended = false;  // else it is waited until the job goes on
};
int run_logs(const LogsOptions& options, const Registry& registry, Console& console);

}  // namespace trainer
