// One value describes a kind: its controller, webhooks, servers, CRDs and subcommands.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/kinds/kinds.hh"
#include "controller/admission/webhook.hh"
#include "controller/config/configuration.hh"
#include "controller/registration/command_hooks.hh"
#include "controller/registration/job_metrics.hh"
#include "controller/registration/request_handler.hh"
#include "kube/manager/controller.hh"
#include "kube/model/json.hh"

namespace trainer {

// Pods reach this process's servers by this identity.
struct ServerIdentity {
  std::string host;
  std::string ca_pem;  // all CAs that clients must trust: while one replaces another, both
  std::vector<std::function<void()>> on_ca_change;  // called after one CA has replaced another

  void set_ca(std::string pem);
};

// These are the inputs of all registrations. Concurrency: `server` is used on the control loops'
// thread only.
struct KindOptions {
  Configuration configuration;
  std::shared_ptr<ServerIdentity> server = std::make_shared<ServerIdentity>();
  std::string ns = "kubeflow-system";  // the namespace in which this process runs
  // The counts of the jobs of all kinds, for metrics.
  std::shared_ptr<JobCensus> jobs = std::make_shared<JobCensus>();
};

struct KindRegistration {
  // "" says that every installation has this kind. Otherwise it is the name of the option of an
  // installation that has it, such as "v1"; its CRDs and rules are in manifests of their own
  // (`trainer crds OPTION`, `trainer rbac OPTION`).
  std::string option;
  kube::ControllerRegistration controller;
  AdmissionRegistration admission;
  std::vector<ServerRegistration> servers;
  std::vector<ApiKind> crds;  // to install
  std::vector<RenderHook> render;
  std::optional<WhyHook> why;
  std::optional<LogsHook> logs;
  std::optional<JobsHook> jobs;
};

// The kinds are in the order in which controllers start and manifests are printed.
using Registry = std::vector<KindRegistration>;

std::vector<kube::ControllerRegistration> controllers_of(const Registry& registry);
// Returns those that a process outside the cluster publishes.
std::vector<Webhook> published_webhooks(const Registry& registry);
// Returns whether both are one resource, perhaps in two versions. Such kinds share a CRD.
bool share_crd(const kube::Resource& one, const kube::Resource& other);
// Returns the kinds to install, in the registry's order. Kinds of one name are one CRD, with the
// versions of all of them.
std::vector<ApiKind> api_kinds_of(const Registry& registry);
// Returns the CRDs of these kinds.
std::vector<kube::Json> custom_resource_definitions(const Registry& registry);
// Returns the names of all webhook configurations, published or installed separately.
std::set<std::string> configuration_names(const Registry& registry);
bool has_mutating_webhooks(const Registry& registry);
// Returns one warning for each key of `groupKindConcurrency` that is no kind of `registry`. The
// kinds of runtimes have no controller, but upstream's configuration file has keys for them: no
// warning.
std::vector<std::string> concurrency_warnings(const Configuration& configuration,
                                              const Registry& registry);

}  // namespace trainer
