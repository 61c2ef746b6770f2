// One value that describes a kind: its controller, webhooks, servers, CRDs and subcommands.
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

// How pods reach this process's servers.
struct ServerIdentity {
  std::string host;
  std::string ca_pem;  // all CAs that clients are to trust: while one replaces another, both
  std::vector<std::function<void()>> on_ca_change;  // called after one CA has replaced another

  void set_ca(std::string pem);
};

// The inputs of all registrations. Concurrency: `server` is used on the control loops' thread only.
struct KindOptions {
  Configuration configuration;
  std::shared_ptr<ServerIdentity> server = std::make_shared<ServerIdentity>();
  std::string ns = "kubeflow-system";  // where this process runs
  // The counts of the jobs of all kinds, for metrics.
  std::shared_ptr<JobCensus> jobs = std::make_shared<JobCensus>();
};

struct KindRegistration {
  // "": every installation has this kind. Else the name of the option of an installation that has
  // it, such as "v1"; its CRDs and rules are in manifests of their own (`trainer crds OPTION`,
  // `trainer rbac OPTION`).
  std::string option;
  kube::ControllerRegistration controller;
  AdmissionRegistration admission;
  std::vector<ServerRegistration> servers;
  std::vector<ApiKind> crds;  // to install
  std::vector<RenderHook> render;
  std::optional<WhyHook> why;
  std::optional<LogsHook> logs;
};

// In the order in which controllers start and manifests are printed.
using Registry = std::vector<KindRegistration>;

std::vector<kube::ControllerRegistration> controllers_of(const Registry& registry);
// Those that a process outside the cluster publishes.
std::vector<Webhook> published_webhooks(const Registry& registry);
// The CRDs to install, in the registry's order.
std::vector<kube::Json> custom_resource_definitions(const Registry& registry);
// Names of all webhook configurations, published or installed separately.
std::set<std::string> configuration_names(const Registry& registry);
bool has_mutating_webhooks(const Registry& registry);

}  // namespace trainer
