#include "tests/unit/admission/fixture.hh"

#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/yaml.hh"
#include "runtimes/plugins/registry.hh"
#include "tests/support/catch.hh"

namespace trainer::test {

using kube::Json;

Json yaml(std::string_view text) {
  auto parsed = kube::parse_yaml(text);
  if (!parsed) FAIL(parsed.error().message);
  return std::move(*parsed);
}

Json torch_runtime() {
  return yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: rt, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        replicas: 1
        groupName: default
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: 'img:1'}]
)");
}

Json train_job() {
  return yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: ns, uid: job-uid}
spec:
  runtimeRef: {name: rt, kind: ClusterTrainingRuntime, apiGroup: trainer.kubeflow.org}
  suspend: false
  managedBy: trainer.kubeflow.org/trainjob-controller
)");
}

Json patches(std::string_view manager, std::string_view pool) {
  Json list = yaml(R"(
- manager: x
  trainingRuntimeSpec:
    template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {pool: x}}}}}}]}}
)");
  Json& patch = list.as_array()[0];
  patch.set("manager", manager);
  Json& job = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"].as_array()[0];
  job["template"]["spec"]["template"]["spec"]["nodeSelector"].set("pool", pool);
  return list;
}

AdmissionRequest create(Json object) {
  AdmissionRequest request;
  request.operation = "CREATE";
  request.ns = "ns";
  request.kind = object.get_string("kind");
  request.object = std::move(object);
  return request;
}

AdmissionRequest update(Json before, Json after) {
  AdmissionRequest request = create(std::move(after));
  request.operation = "UPDATE";
  request.old_object = std::move(before);
  return request;
}

Cluster::Cluster() {
  runtimes["ClusterTrainingRuntime/rt"] = torch_runtime();
}

AdmissionLookups Cluster::lookups() const {
  AdmissionLookups lookups;
  lookups.runtime = [this](const std::string& kind, const std::string& ns,
                           const std::string& name) {
    CHECK(ns == (kind == "TrainingRuntime" ? "ns" : ""));
    const auto found = runtimes.find(kind + "/" + name);
    return found == runtimes.end() ? nullptr : std::make_shared<const Json>(found->second);
  };
  lookups.jobset = [this](const std::string&, const std::string&) {
    return jobset ? std::make_shared<const Json>(*jobset) : nullptr;
  };
  lookups.snapshot = [this](const std::string&, const std::string&) {
    return snapshot ? std::make_shared<const std::string>(*snapshot) : nullptr;
  };
  lookups.priority_class_exists = [this](const std::string& name) {
    return priority_classes.count(name) == 1;
  };
  lookups.claim = [this](const std::string&, const std::string& name) {
    const auto found = claims.find(name);
    return found == claims.end() ? std::nullopt : std::optional<Json>(found->second);
  };
  return lookups;
}

namespace {

// RFC 6901 tokens, unescaped.
std::vector<std::string> tokens_of(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (const char c : pointer) {
    if (c == '/') {
      tokens.emplace_back();
    } else {
      tokens.back().push_back(c);
    }
  }
  for (std::string& token : tokens) {
    for (const auto& [escaped, plain] :
         {std::pair<std::string, std::string>{"~1", "/"}, {"~0", "~"}}) {
      for (std::size_t at = 0; (at = token.find(escaped, at)) != std::string::npos; at += 1)
        token.replace(at, 2, plain);
    }
  }
  return tokens;
}

void apply_operation(Json& document, const Json& operation) {
  const auto tokens = tokens_of(operation.get_string("path"));
  REQUIRE_FALSE(tokens.empty());
  Json* parent = &document;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    parent = parent->is_array() ? &parent->as_array().at(std::stoul(tokens[i]))
                                : parent->find(tokens[i]);
    REQUIRE(parent);
  }
  const Json* value = operation.find("value");
  const bool is_removal = operation.get_string("op") == "remove";
  if (parent->is_object()) {
    if (is_removal) {
      CHECK(parent->erase(tokens.back()));
    } else {
      parent->set(tokens.back(), *value);
    }
    return;
  }
  auto& items = parent->as_array();
  const std::size_t index = tokens.back() == "-" ? items.size() : std::stoul(tokens.back());
  const auto at = items.begin() + static_cast<std::ptrdiff_t>(index);
  if (is_removal) {
    items.erase(at);
  } else if (operation.get_string("op") == "add") {
    items.insert(at, *value);
  } else {
    *at = *value;
  }
}

}  // namespace

Json apply(const AdmissionRequest& request, const AdmissionAnswer& answer) {
  Json object = request.object;
  if (answer.json_patch.is_array()) {
    for (const Json& operation : answer.json_patch.as_array()) apply_operation(object, operation);
  }
  return object;
}

void check_consistent(const AdmissionRequest& request, const AdmissionAnswer& answer) {
  CAPTURE(answer.message);
  CHECK(answer.is_allowed == answer.message.empty());
  CHECK(answer.is_allowed == answer.reason.empty());
  CHECK(answer.is_allowed == (answer.code == 200));
  if (!answer.is_allowed) CHECK(answer.json_patch.is_null());
  if (answer.json_patch.is_null()) return;
  CHECK(apply(request, answer) != request.object);
}

AdmissionAnswer validate_runtime(const AdmissionRequest& request) {
  return trainer::validate_runtime(request, PipelineOptions(production_plugins()));
}

AdmissionNeeds needs_of(const AdmissionRequest& request, const kube::Json* runtime) {
  return trainer::needs_of(request, production_plugins(), runtime);
}

}  // namespace trainer::test
