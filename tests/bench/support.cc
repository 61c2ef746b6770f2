#include <sstream>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/json_text.hh"
#include "tests/bench/scenarios.hh"

namespace trainer::bench {

using kube::Json;
using kube::Task;

namespace {

constexpr const char* kRuntime = R"({
  "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
  "metadata": {"name": "bench", "labels": {"trainer.kubeflow.org/framework": "torch"}},
  "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [
    {"name": "node", "template": {
      "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
      "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "node", "image": "localhost/none:1", "command": ["true"],
         "resources": {"requests": {"cpu": "1"}}}]}}}}}]}}}})";

}  // namespace

Task<void> make_runtime(Cluster& cluster) {
  Json runtime = *kube::parse_json(kRuntime);
  auto made = co_await cluster.client().create(kClusterTrainingRuntimes, std::move(runtime));
  if (!made && made.error().code != kube::ErrorCode::kAlreadyExists) {
    throw std::runtime_error(made.error().message);
  }
}

Json trainjob(const std::string& ns, const std::string& name, int nodes, bool is_suspended) {
  Json job = Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"}, {"kind", "TrainJob"}});
  job["metadata"].set("name", name).set("namespace", ns);
  job["spec"]["runtimeRef"].set("name", "bench");
  job["spec"]["trainer"].set("numNodes", nodes);
  if (is_suspended) job["spec"].set("suspend", true);
  return job;
}

Json jobset(const std::string& ns, const std::string& name, int jobs, int pods) {
  Json set = *kube::parse_json(
      R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {},
    "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"backoffLimit": 0, "completionMode": "Indexed",
      "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "localhost/none:1"}]}}}}}]}})");
  set["metadata"].set("namespace", ns).set("name", name);
  Json& worker = set["spec"]["replicatedJobs"].as_array()[0];
  worker.set("replicas", jobs);
  worker["template"]["spec"].set("parallelism", pods).set("completions", pods);
  return set;
}

Task<std::string> get_local(Cluster& cluster, std::string server, std::string path) {
  kube::ClientConfig config;
  config.server = std::move(server);
  config.insecure_skip_tls_verify = true;  // our own process, by its address
  const auto transport = kube::make_transport(cluster.io(), config, kube::TransportLimits());
  kube::HttpRequest request("GET", std::move(path));
  request.deadline = kube::Milliseconds(2'000);
  auto answer = co_await transport->send(std::move(request));
  co_return answer && answer->status == 200 ? answer->body : std::string();
}

Task<std::string> read_metrics(Context& context) {
  std::string text = co_await get_local(context.cluster, context.metrics_server, "/metrics");
  if (text.empty()) throw std::runtime_error(context.metrics_server + "/metrics did not answer");
  co_return text;
}

double metric(const std::string& exposition, const std::string& name,
              const std::vector<std::string>& labels) {
  double sum = 0;
  std::istringstream lines(exposition);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "{", 0) != 0) continue;
    bool has_all = true;
    for (const auto& label : labels) has_all = has_all && line.find(label) != std::string::npos;
    if (has_all) sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

double requests(const std::string& exposition, const std::string& method,
                const std::string& resource) {
  return metric(exposition, "rest_client_requests_total",
                {"method=\"" + method + "\"", "resource=\"" + resource + "\""});
}

}  // namespace trainer::bench
