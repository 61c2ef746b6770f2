// These are the subcommands, without their parsing: each takes its options as a struct and returns
// an exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/cli.hh"
#include "controller/cli/console.hh"
#include "controller/cli/run_job.hh"
#include "controller/registration/kind_registration.hh"

namespace trainer {

enum class OutputFormat { kText, kYaml, kJson };

// These options choose the cluster, by the same flags as kubectl's.
struct ClusterOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: the context's
};

int run_version(OutputFormat format, Console& console);

struct CrdsOptions {
  std::vector<std::string> installed;  // options; empty: the CRDs of every installation
  std::vector<std::string> except;     // names of CRDs to leave out
  std::vector<std::string> keep;       // names of others that Helm must not delete
  bool is_applied = false;             // into the cluster, instead of printed
  ClusterOptions cluster;
};
// Prints the CustomResourceDefinitions to install, or those of an option, as YAML documents.
int run_crds(const CrdsOptions& options, Console& console);

// Prints the ClusterRole of the controller, with the rules of all kinds, or that of an option, as
// YAML; with option "namespaced" a Role.
int run_rbac(const std::string& option, Console& console);

struct RuntimesOptions {
  std::vector<std::string> names;  // empty: all
  bool is_list = false;            // names and frameworks only
  // "NAME=IMAGE" replaces the image of containers with the image NAME, whatever its tag.
  std::vector<std::string> images;
  std::vector<std::string> labels;  // "KEY=VALUE", for each runtime
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
  std::chrono::seconds limit{30};  // failed checks are tried again for this long
};
// Checks whether an installation works: its kinds are served, a leader renews the Lease, admission
// answers.
int run_check(const CheckOptions& options, Console& console);

struct RenderOptions {
  std::vector<std::string> files;  // "-": standard input
  OutputFormat format = OutputFormat::kYaml;
  bool is_explained = false;  // say where each value came from
  bool has_jobs = false;      // expand JobSets into Jobs and Services
  std::string config_file;    // the controller's file; empty: all defaults
  std::string feature_gates;  // they win over the file
};
int run_render(const RenderOptions& options, const Registry& registry, Console& console);

struct PlanOptions {
  ClusterOptions cluster;
  std::vector<std::string> files;  // "-": standard input; or one KIND/NAME of the cluster
  OutputFormat format = OutputFormat::kText;
};
int run_plan(const PlanOptions& options, const Registry& registry, Console& console);

struct WhyOptions {
  ClusterOptions cluster;
  std::vector<std::string> target;  // the words for find_target()
  OutputFormat format = OutputFormat::kText;
  bool has_stacks = false;  // print the stacks of the last stall instead
};
int run_why(const WhyOptions& options, const Registry& registry, Console& console);

struct LogsOptions {
  ClusterOptions cluster;
  std::vector<std::string> target;
  bool is_followed = false;
  std::optional<std::int32_t> node;  // only this node's pods
  std::int64_t tail = -1;            // the lines of each pod to begin with; -1: all
  std::string since;                 // a duration; empty: from the start
  bool has_timestamps = false;
  bool ends_when_suspended = false;  // if it is false, the command waits until the job goes on
};
int run_logs(const LogsOptions& options, const Registry& registry, Console& console);

// `trainer run` and `trainer local run` have these flags beside those of the job.
struct RunMode {
  bool is_dry_run = false;                    // print the objects, create nothing
  OutputFormat format = OutputFormat::kText;  // the format of a dry run; kText: YAML
  bool is_confirmed = false;                  // do not ask
  bool is_detached = false;                   // do not wait for the end
  bool is_watched = false;                    // start the command again after an edit of --code
};
struct RunOptions {
  ClusterOptions cluster;
  JobFlags job;
  RunMode mode;
};
// Makes a TrainJob of a command, follows it, and ends with its exit status (exit_status_of()).
// SIGINT or SIGTERM suspend the job, a second one leaves it to itself.
int run_run(const RunOptions& options, const Registry& registry, Console& console);

struct UiOptions {
  ClusterOptions cluster;
  bool has_all_namespaces = false;
  unsigned short port = 0;  // 0: any free one
};
// Serves a page about jobs on 127.0.0.1 until it gets SIGINT or SIGTERM.
int run_ui(const UiOptions& options, const Registry& registry, Console& console);

}  // namespace trainer
