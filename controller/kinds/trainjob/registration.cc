#include "controller/kinds/trainjob/registration.hh"

#include <chrono>
#include <utility>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/trainjob/command_hooks.hh"
#include "controller/kinds/trainjob/pipeline_settings.hh"
#include "controller/kinds/trainjob/trainjob_controller.hh"
#include "controller/kinds/trainjob/webhooks.hh"
#include "controller/status/status_handler.hh"

namespace trainer {
namespace {

using kube::StoredObject;
using kube::Watch;
using std::chrono::milliseconds;

// Reconciles wait for the API server nearly all the time. So many may run on one thread, and the
// semaphore bounds their writes.
constexpr int kWorkers = 32;
constexpr std::size_t kMaxReport = 1U << 20;
// A TrainJob's counters wait longer than its JobSet's, so that one write has both. A reconcile that
// finds little more than counters waits as long.
constexpr kube::DebounceTimes kDebounce{milliseconds(150), milliseconds(300), milliseconds(300),
                                        milliseconds(3'000)};

std::vector<Watch> watches(bool is_namespaced) {
  using Self = TrainJobController;
  const auto stored = [](const kube::Resource& resource) {
    return kube::StoredObjectTransform(resource);
  };
  std::vector<Watch> all{
      Watch::only_read<StoredObject>(all_of(kTrainJobs), stored(kTrainJobs)),
      Watch::of<Self, StoredObject>(all_of(kTrainingRuntimes), stored(kTrainingRuntimes),
                                    &Self::on_runtime),
      Watch::of<Self, StoredObject>(all_of(kJobSets), jobset_transform(), &Self::on_jobset),
      indexed_jobs(Watch::only_read<JobView>(jobset_jobs(), job_transform())),
      indexed_pods(Watch::of<Self, PodView>(jobset_pods(), pod_transform(), &Self::on_pod)),
  };
  if (!is_namespaced) {
    all.push_back(Watch::of<Self, StoredObject>(
        all_of(kClusterTrainingRuntimes), stored(kClusterTrainingRuntimes), &Self::on_runtime));
  }
  return all;
}

kube::PolicyRule pod_groups(std::string comment, std::string group, std::string option,
                            std::vector<std::string> resources = {"podgroups"}) {
  return {std::move(comment),         {std::move(group)}, std::move(resources), {},
          {"create", "get", "patch"}, std::move(option)};
}

std::vector<kube::PolicyRule> rules() {
  return {
      {"The jobs of users. A job is deleted when its TTL has passed.",
       {"trainer.kubeflow.org"},
       {"trainjobs"},
       {},
       {"delete", "get", "list", "watch"}},
      {"", {"trainer.kubeflow.org"}, {"trainjobs/status"}, {}, {"patch"}},
      {"",
       {"trainer.kubeflow.org"},
       {"trainingruntimes", "clustertrainingruntimes"},
       {},
       {"get", "list", "watch"}},
      {"Removes a finalizer of v2.0 to v2.2 (removeLegacyFinalizers).",
       {"trainer.kubeflow.org"},
       {"trainingruntimes", "clustertrainingruntimes"},
       {},
       {"patch"},
       "legacy-finalizers"},
      {"Marks finished jobs (marksFinishedJobs).",
       {"trainer.kubeflow.org"},
       {"trainjobs"},
       {},
       {"patch"},
       "finished-marker"},
      {"Lets owner references block a deletion.",
       {"trainer.kubeflow.org"},
       {"trainjobs/finalizers"},
       {},
       {"update"}},
      {"",
       {"jobset.x-k8s.io"},
       {"jobsets"},
       {},
       {"create", "delete", "get", "list", "patch", "watch"}},
      {"", {"batch"}, {"jobs"}, {}, {"list", "watch"}},
      {"", {""}, {"pods"}, {}, {"list", "watch"}},
      {"The dependent objects of a TrainJob: the runtime's snapshot, hostfiles, keys. "
       "Secrets are read by name only.",
       {""},
       {"configmaps"},
       {},
       {"create", "get", "patch"}},
      {"", {""}, {"secrets"}, {}, {"create", "get"}},
      {"Services of a data cache, and of each JobSet.", {""}, {"services"}, {}, {"create", "get"}},
      pod_groups("Gangs of the coscheduling plugin.", "scheduling.x-k8s.io", "coscheduling"),
      pod_groups("Gangs of Volcano.", "scheduling.volcano.sh", "volcano"),
      pod_groups("Gangs of Kubernetes' own scheduler.", "scheduling.k8s.io", "workload",
                 {"podgroups", "workloads"}),
      {"", {"scheduling.k8s.io"}, {"priorityclasses"}, {}, {"get"}},
      {"For admission.", {""}, {"persistentvolumeclaims"}, {}, {"get"}},
      {"Events are written for reconciled objects, and read for those of a job that is stuck.",
       {""},
       {"events"},
       {},
       {"create", "list", "patch"}},
      {"Whose token a progress report has.",
       {"authentication.k8s.io"},
       {"tokenreviews"},
       {},
       {"create"}},
      {"The pod that sends a progress report.", {""}, {"pods"}, {}, {"get"}},
  };
}

ServerRegistration status_server(const Configuration& configuration,
                                 std::shared_ptr<HeartbeatBoard> board) {
  StatusLimits limits;
  limits.qps = configuration.statusServer.qps;
  limits.burst = configuration.statusServer.burst;
  ServerRegistration made;
  made.name = "status server";
  made.port = static_cast<unsigned short>(configuration.statusServer.port);
  made.max_body_bytes = kMaxReport;
  made.make = [limits, board = std::move(board)](
                  kube::asio::io_context& io, kube::ApiClient& client,
                  const kube::Log& log) -> std::unique_ptr<RequestHandler> {
    return std::make_unique<StatusHandler>(io, client, limits, board, log);
  };
  return made;
}

}  // namespace

KindRegistration trainjob_registration(const KindOptions& options,
                                       std::shared_ptr<JobSetState> shared) {
  const Configuration& configuration = options.configuration;
  TrainJobController::Settings settings(pipeline_settings(configuration));
  settings.gates = jobset_gates(configuration.featureGates);
  settings.server = options.server;
  settings.removes_legacy_finalizers = configuration.removeLegacyFinalizers;
  settings.marks_finished = configuration.marksFinishedJobs;
  settings.jobs = options.jobs;
  settings.is_namespaced = configuration.namespaced;
  settings.status_port = static_cast<unsigned short>(configuration.statusServer.port);

  KindRegistration made;
  // Dashboards for upstream's controllers know this name (Kubeflow Trainer, pkg/controller).
  made.controller.name = "trainjob_controller";
  made.controller.group_kind = "TrainJob.trainer.kubeflow.org";
  made.controller.workers = kWorkers;
  made.controller.watches = watches(configuration.namespaced);
  made.controller.debounce = kDebounce;
  made.controller.default_failure = {"TrainJobResourcesCreationFailed",
                                     "TrainJob resources reconciliation failed: "};
  made.controller.rules = rules();
  made.crds = {trainjob_kind(), training_runtime_kind(), cluster_training_runtime_kind()};
  made.admission = trainjob_admission(settings.pipeline, settings.gates);
  if (settings.pipeline.is_progress_enabled) {
    settings.heartbeats = std::make_shared<HeartbeatBoard>();
    made.servers.push_back(status_server(configuration, settings.heartbeats));
  }
  add_trainjob_hooks(made);
  made.controller.make = [shared = std::move(shared),
                          settings = std::move(settings)](const kube::ControllerContext& context) {
    return std::make_unique<TrainJobController>(context, shared, settings);
  };
  return made;
}

}  // namespace trainer
