// PyTorchJob (pkg/controller.v1/pytorch).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/difference.hh"
#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/v1/frameworks/processes.hh"
#include "runtimes/v1/frameworks/support.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1::pytorch {

extern const Framework kPyTorchJob;

namespace {

using kube::Json;

// Workers wait until the master's Service has an address, that is until the master is ready.
constexpr std::string_view kInitContainers = R"(
- name: init-pytorch
  image: "{{.InitContainerImage}}"
  imagePullPolicy: IfNotPresent
  resources:
    requests: {cpu: 50m, memory: 10Mi}
    limits: {cpu: 100m, memory: 20Mi}
  command:
  - sh
  - -c
  - for i in $(seq {{.MaxTries}}); do nslookup {{.MasterAddr}} && exit 0; echo waiting for master; sleep 2; done; exit 1
)";

// Replaces {{.FIELD}}; nothing else of Go templates is supported.
std::string fill_in(std::string text, std::string_view field, const std::string& value) {
  for (const std::string& mark :
       {fmt::format("{{{{.{}}}}}", field), fmt::format("{{{{ .{} }}}}", field)})
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  return text;
}

std::string fill_in_all(std::string text, const Settings& settings, const std::string& master) {
  text = fill_in(std::move(text), "MasterAddr", master);
  text = fill_in(std::move(text), "InitContainerImage", settings.init_container_image);
  return fill_in(std::move(text), "MaxTries", std::to_string(settings.init_container_tries));
}

void add_init_containers(const V1Job& job, const Settings& settings, Json& pod) {
  const std::string& text = settings.init_container_template;
  const auto containers = kube::parse_yaml(fill_in_all(
      text.empty() ? std::string(kInitContainers) : text, settings, host(job, kMaster)));
  if (!containers || !containers->is_array()) return;  // refused at start
  for (const Json& container : containers->as_array())
    pod["spec"]["initContainers"].push_back(container);
}

std::int32_t world_size(const V1Job& job) {
  return process_count(total_replicas(job), known_processes(job.spec));
}

void set_master_env(const V1Job& job, const PodSlot& slot, Environment& env) {
  const std::string port = std::to_string(port_of(kPyTorchJob, job, kMaster));
  const std::string address = host(job, kMaster);
  const std::string rank =
      std::to_string(std::int64_t{slot.index} + (slot.role == kWorker ? 1 : 0));
  env.set("MASTER_PORT", port);
  env.set("PET_MASTER_PORT", port);
  env.set("MASTER_ADDR", address);
  env.set("PET_MASTER_ADDR", address);
  env.set("WORLD_SIZE", std::to_string(world_size(job)));
  env.set("RANK", rank);
  env.set("PET_NODE_RANK", rank);
}

void set_elastic_env(const V1Job& job, Environment& env) {
  const ElasticPolicy& policy = *job.spec.elasticPolicy;
  const std::int64_t port = policy.rdzvPort ? *policy.rdzvPort : port_of(kPyTorchJob, job, kWorker);
  env.set("PET_RDZV_ENDPOINT",
          fmt::format("{}:{}", policy.rdzvHost.value_or(host(job, kWorker)), port));
  env.set("PET_RDZV_BACKEND", policy.rdzvBackend.value_or("c10d"));
  env.set("PET_NNODES", fmt::format("{}:{}", process_count(policy.minReplicas.value_or(1)),
                                    process_count(policy.maxReplicas.value_or(1))));
  if (policy.maxRestarts) env.set("PET_MAX_RESTARTS", std::to_string(*policy.maxRestarts));
  if (policy.nProcPerNode)
    env.set("PET_NPROC_PER_NODE", std::to_string(process_count(*policy.nProcPerNode)));
  if (policy.rdzvId) env.set("PET_RDZV_ID", *policy.rdzvId);
  std::string options;
  for (const RendezvousOption& option : policy.rdzvConf)
    options += fmt::format("{}{}={}", options.empty() ? "" : ",", option.key, option.value);
  if (!options.empty()) env.set("PET_RDZV_CONF", std::move(options));
  if (policy.standalone.value_or(false)) env.set("PET_STANDALONE", "");
}

GeneratedText measured(std::string_view name, std::string path, std::int64_t bytes) {
  GeneratedText text;
  text.name = name;
  text.path = std::move(path);
  text.bytes = bytes_of_variable(name, bytes);
  text.is_in_each_container = true;
  return text;
}

// The variables that repeat texts of the spec.
std::vector<GeneratedText> measure(const V1Job& job, const Settings&) {
  std::vector<GeneratedText> texts;
  if (const auto& processes = job.spec.nprocPerNode)
    texts.push_back(measured("PET_NPROC_PER_NODE", "spec.nprocPerNode", std::ssize(*processes)));
  if (!job.spec.elasticPolicy) return texts;
  const ElasticPolicy& policy = *job.spec.elasticPolicy;
  const std::string path = "spec.elasticPolicy.";
  constexpr std::int64_t kColonAndPort = 21;
  if (policy.rdzvHost)
    texts.push_back(measured("PET_RDZV_ENDPOINT", path + "rdzvHost",
                             std::ssize(*policy.rdzvHost) + kColonAndPort));
  if (policy.rdzvBackend)
    texts.push_back(
        measured("PET_RDZV_BACKEND", path + "rdzvBackend", std::ssize(*policy.rdzvBackend)));
  if (policy.rdzvId)
    texts.push_back(measured("PET_RDZV_ID", path + "rdzvId", std::ssize(*policy.rdzvId)));
  std::int64_t options = 0;
  for (const RendezvousOption& option : policy.rdzvConf)
    options += std::ssize(option.key) + std::ssize(option.value) + 2;
  if (options > 0) texts.push_back(measured("PET_RDZV_CONF", path + "rdzvConf", options - 1));
  return texts;
}

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings& settings, Json& pod) {
  const bool has_master = find_spec(job, kMaster) != nullptr;
  Environment env;
  env.set("PYTHONUNBUFFERED", "1");
  if (has_master) set_master_env(job, slot, env);
  if (job.spec.nprocPerNode)
    env.set("PET_NPROC_PER_NODE", processes_of_pod(*job.spec.nprocPerNode).text);
  if (job.spec.elasticPolicy)
    set_elastic_env(job, env);
  else
    env.set("PET_NNODES", std::to_string(process_count(total_replicas(job))));
  add_to_all_containers(env, pod);
  if (has_master && slot.role == kWorker) add_init_containers(job, settings, pod);
}

bool is_master(const V1Job& job, const PodSlot& slot) {
  if (find_spec(job, kMaster)) return slot.role == kMaster;
  return slot.role == kWorker && slot.index == 0;
}

void set_defaults(V1Job& job) {
  const auto& elastic = job.spec.elasticPolicy;
  if (!job.spec.nprocPerNode && !(elastic && elastic->nProcPerNode)) job.spec.nprocPerNode = "auto";
}

void check(const V1Job& job, kube::FieldErrors& errors, std::vector<std::string>& warnings) {
  const auto& elastic = job.spec.elasticPolicy;
  if (elastic && !find_spec(job, kWorker))
    errors.push_back(kube::required(role_path(kPyTorchJob, kWorker),
                                    "must be configured if elastic policy is used"));
  if (elastic && elastic->nProcPerNode) {
    const std::string path = "spec.elasticPolicy.nProcPerNode";
    warnings.push_back(path + " is deprecated, use spec.nprocPerNode instead");
    if (job.spec.nprocPerNode)
      errors.push_back(kube::forbidden(path, "must not be used with spec.nprocPerNode"));
  }
  check_single_master(kPyTorchJob, job, errors);
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (role != kMaster && spec.replicas && *spec.replicas < 1)
      errors.push_back(
          kube::forbidden(role_path(kPyTorchJob, role) + ".replicas", "must be at least 1"));
}

// torchrun waits for a number of pods, and for ever if there are fewer.
void warn_about_elastic(const V1Job& job, std::vector<std::string>& out) {
  const ElasticPolicy& elastic = *job.spec.elasticPolicy;
  const std::int64_t least = elastic.minReplicas.value_or(1);
  const std::int64_t most = elastic.maxReplicas.value_or(1);
  const std::int64_t workers = replicas_of(job, kWorker);
  if (least > most)
    out.push_back(fmt::format(
        "spec.elasticPolicy.minReplicas: {} is more than maxReplicas {}, and torchrun refuses that",
        least, most));
  else if (!elastic.metrics && total_replicas(job) < least)
    out.push_back(
        fmt::format("spec.elasticPolicy.minReplicas: torchrun waits for {} pods, and there are {}: "
                    "set replicas "
                    "of the workers, or metrics by which an autoscaler raises them",
                    least, total_replicas(job)));
  else if (workers > most)
    out.push_back(fmt::format(
        "spec.elasticPolicy.maxReplicas: {} of {} workers find no place in the training; set fewer "
        "replicas, or a higher maxReplicas",
        workers - most, workers));
  if (const auto port = elastic.rdzvPort; port && (*port < 1 || *port > 65535))
    out.push_back(fmt::format(
        "spec.elasticPolicy.rdzvPort: {} is no port: it must be between 1 and 65535", *port));
}

// A utilization is a part of what all containers of a pod request. Without requests an autoscaler
// does nothing, and says so in an event of its own only.
void warn_about_metrics(const V1Job& job, std::vector<std::string>& out) {
  const auto& elastic = job.spec.elasticPolicy;
  const ReplicaSpec* workers = find_spec(job, kWorker);
  if (!elastic || !elastic->metrics || workers == nullptr) return;
  const std::vector<Json>& metrics = *elastic->metrics;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const Json& resource = metrics[i].get("resource");
    const std::string_view name = resource.get_string("name");
    if (resource.get("target").get_string("type") != "Utilization" || name.empty()) continue;
    for (const Json& container : workers->template_.get("spec").get_array("containers")) {
      const Json& resources = container.get("resources");
      if (resources.get("requests").find(name) || resources.get("limits").find(name)) continue;
      return out.push_back(fmt::format(
          "spec.elasticPolicy.metrics[{}].resource.name: container {} of the workers requests no "
          "{}, so the autoscaler knows no utilization and leaves the number of workers alone; set "
          "the request",
          i, container.get_string("name"), name));
    }
  }
}

pipeline::CommandLine command_line_of(const Json& container) {
  const auto words_of = [&container](std::string_view member) {
    std::vector<std::string> words;
    for (const Json& word : container.get_array(member))
      if (word.is_string()) words.push_back(word.as_string());
    return words;
  };
  return {words_of("command"), words_of("args")};
}

// torchrun's --nnodes, which wins over PET_NNODES, and so over elasticPolicy.
void warn_about_nodes(const V1Job& job, std::vector<std::string>& out) {
  const auto& elastic = job.spec.elasticPolicy;
  for (const auto& [role, spec] : job.spec.replicaSpecs) {
    const Json* container = kube::find_container(spec.template_, kPyTorchJob.container);
    if (container == nullptr) continue;
    const auto nodes = pipeline::torchrun_options_of(command_line_of(*container)).nodes;
    if (!nodes) continue;
    const std::string path = fmt::format("{}.template.spec.containers[{}].command",
                                         role_path(kPyTorchJob, role), kPyTorchJob.container);
    if (*nodes != total_replicas(job))
      return out.push_back(fmt::format(
          "{}: torchrun waits for {} pods as --nnodes says, and the job has {}; leave the option "
          "out: the controller sets PET_NNODES",
          path, *nodes, total_replicas(job)));
    if (elastic &&
        (elastic->minReplicas.value_or(1) != *nodes || elastic->maxReplicas.value_or(1) != *nodes))
      return out.push_back(fmt::format(
          "{}: --nnodes={} is the size of the training, so minReplicas and maxReplicas of "
          "spec.elasticPolicy have no effect; leave the option out: the controller sets PET_NNODES",
          path, *nodes));
  }
}

// Plain Python, whose init_process_group() finds in its environment what a pod can know.
void warn_about_plain_python(const V1Job& job, std::vector<std::string>& out) {
  const bool has_master = find_spec(job, kMaster) != nullptr;
  const std::int64_t processes = known_processes(job.spec);
  const std::int64_t pods = total_replicas(job);
  if ((has_master || pods < 2) && processes < 2 && !job.spec.elasticPolicy) return;
  for (const auto& [role, spec] : job.spec.replicaSpecs) {
    const Json* container = kube::find_container(spec.template_, kPyTorchJob.container);
    if (container == nullptr) continue;
    if (pipeline::what_starts(command_line_of(*container)) != pipeline::Starts::kPython) continue;
    const std::string why =
        job.spec.elasticPolicy ? std::string("spec.elasticPolicy has no effect on it")
        : processes > 1
            ? fmt::format("one process a pod runs, and with spec.nprocPerNode WORLD_SIZE is {}",
                          world_size(job))
            : fmt::format(
                  "each of the {} pods runs a training of its own: without a Master they "
                  "have no MASTER_ADDR",
                  pods);
    return out.push_back(
        fmt::format("{}.template.spec.containers[{}].command: Python is started without torchrun, "
                    "so {}; begin it with torchrun",
                    role_path(kPyTorchJob, role), kPyTorchJob.container, why));
  }
}

void warn(const V1Job& job, std::vector<std::string>& out) {
  if (job.spec.nprocPerNode) warn_about_processes(*job.spec.nprocPerNode, out);
  if (job.spec.elasticPolicy) warn_about_elastic(job, out);
  warn_about_metrics(job, out);
  warn_about_nodes(job, out);
  warn_about_plain_python(job, out);
}

// The HorizontalPodAutoscaler sets the number of workers by the subresource `scale`; it stays after
// the end of the job.
bool sync_autoscaler(V1JobContext& context) {
  const auto& elastic = context.job.spec.elasticPolicy;
  if (!elastic || !elastic->metrics) return true;
  const Json* stored = context.find_dependent(kube::kHorizontalPodAutoscalers, context.name());
  if (context.job.is_suspended()) {
    if (stored && context.is_owner_of(*stored))
      context.remove(kube::kHorizontalPodAutoscalers, context.name(),
                     kube::ObjectMeta::of(*stored).uid, "FailedDeleteHPA");
    return true;
  }
  Json spec = Json::object(
      {{"scaleTargetRef", Json::object({{"apiVersion", kPyTorchJob.resource.api_version()},
                                        {"kind", kPyTorchJob.resource.kind},
                                        {"name", context.name()}})},
       {"minReplicas", std::int64_t{elastic->minReplicas.value_or(1)}},
       {"maxReplicas", std::int64_t{elastic->maxReplicas.value_or(1)}},
       {"metrics", *elastic->metrics}});
  kube::canonicalise_quantities(spec);
  if (stored == nullptr)
    context.create(kube::kHorizontalPodAutoscalers, context.name(),
                   Json::object({{"spec", std::move(spec)}}), kBeforePods, "FailedCreateHPA");
  else if (context.is_owner_of(*stored) && !is_contained(spec, stored->get("spec")))
    context.patch(kube::kHorizontalPodAutoscalers, context.name(),
                  Json::object({{"spec", std::move(spec)}}), kBeforePods);
  return true;
}

}  // namespace

std::string check_init_template(const std::string& text) {
  const std::string filled = fill_in_all(text, Settings{}, "job-master-0");
  if (filled.find("{{") != std::string::npos)
    return "only {{.MasterAddr}}, {{.InitContainerImage}} and {{.MaxTries}} may be in the template "
           "of init containers; write anything else out";
  const auto containers = kube::parse_yaml(filled);
  if (!containers) return containers.error().message;
  if (!containers->is_array()) return "the template of init containers must be a YAML list";
  return {};
}

const Framework kPyTorchJob{
    .resource = {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true},
    .singular = "pytorchjob",
    .name = "pytorch",
    .replica_specs = "pytorchReplicaSpecs",
    .roles = {kMaster, kWorker},
    .container = "pytorch",
    .port_name = "pytorchjob-port",
    .port = 23456,
    .restart_policy = "OnFailure",
    .any_worker_succeeds = true,
    .has_selector = true,
    .deleted_noun = "Pod",
    .is_master = is_master,
    .set_defaults = set_defaults,
    .check = check,
    .check_new = check_processes,
    .warn = warn,
    .set_cluster_spec = set_cluster_spec,
    .measure = measure,
    .update_status = decide_by_master_or_workers,
    .sync_dependents = sync_autoscaler,
    .dependents = {kube::kHorizontalPodAutoscalers},
    .crd = {.members = {"elasticPolicy", "nprocPerNode"},
            .scale_path = ".spec.pytorchReplicaSpecs.Worker.replicas"},
};

}  // namespace trainer::v1::pytorch
