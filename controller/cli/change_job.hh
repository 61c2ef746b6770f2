// `suspend`, `resume`, `cancel` and `rerun` change one job that the command line names.
#pragma once

#include <string>
#include <string_view>

#include "controller/cli/cluster.hh"
#include "controller/cli/job_change.hh"
#include "controller/cli/verbs.hh"

namespace trainer {

// One job, and what is needed to read and change it. `registry` and `console` outlive this.
struct JobInCluster {
  const Registry& registry;
  OpenTarget opened;
  std::string verb;  // the subcommand
  Console& console;

  kube::ApiClient& client() const { return opened.cluster->client(); }
  const KindRegistration& kind() const { return *opened.target.kind; }
  const kube::Resource& resource() const { return opened.target.resource(); }

  // Reads the object.
  kube::Task<kube::Result<kube::Json>> get() const { return client().get(resource(), opened.key); }
  ChangeFacts facts(const kube::Json& object) const {
    return read_change_facts(registry, kind(), object);
  }
  // Prints the sentence on standard error and returns kExitRefused.
  int refuse(std::string_view sentence) const;
  // Prints an error of the cluster and returns the exit code.
  int report(const kube::Error& error) const;
};

// Errors: the exit code, after a message.
tl::expected<JobInCluster, int> open_job(const Registry& registry, std::string_view verb,
                                         const JobOptions& options, Console& console);

}  // namespace trainer
