// Kinds are registrations: one that tests bring, and production's with one taken out.
#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "controller/admission/admission.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/log_pod.hh"
#include "controller/cli/why_report.hh"
#include "controller/kinds/v1/registration.hh"
#include "controller/process/metrics.hh"
#include "controller/registration/cluster_role.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/component/captured_errors.hh"
#include "tests/component/idle_manager.hh"
#include "tests/component/sample_kind/widget_kind.hh"
#include "tests/component/sample_v1_kind/example_job.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kWidgetsPath = "/apis/example.com/v1/widgets";
const std::string kConfigMapsPath = "/api/v1/configmaps";
const std::string kCreatePath = "/api/v1/namespaces/n/configmaps";
const std::string kStatusPath = "/apis/example.com/v1/namespaces/n/widgets/w/status";

kube::ManagerOptions manager_options() {
  kube::ManagerOptions options;
  options.component = "trainer";
  return options;
}

std::string list_of(const std::string& items) {
  return R"({"kind":"List","metadata":{"resourceVersion":"5"},"items":[)" + items + "]}";
}

KindOptions all_kinds() {
  KindOptions options = test::own_jobsets();
  options.configuration.trainingOperator.schemes = *v1::enabled_frameworks({});
  return options;
}

Registry without(const std::string& controller, const KindOptions& options = test::own_jobsets()) {
  Registry registry = production_registry(options);
  std::erase_if(registry, [&controller](const KindRegistration& kind) {
    return kind.controller.name == controller;
  });
  return registry;
}

std::set<std::string> watched(const kube::Manager& manager) {
  std::set<std::string> all;
  for (const auto& entry : manager.caches().entries())
    all.insert(entry->collection.resource.plural);
  return all;
}

using Names = std::set<std::string>;

Names minus(const Names& a, const Names& b) {
  Names left;
  std::ranges::set_difference(a, b, std::inserter(left, left.end()));
  return left;
}

std::string name_of(const kube::Collection& collection) {
  return collection.resource.plural + "." + collection.resource.group + " " +
         collection.label_selector;
}

// A registry has these at run time: collections with a watch, webhooks, and rights in any of its
// ClusterRoles.
struct Parts {
  Names watches;
  Names webhooks;
  Names rights;
};

Parts parts_at_run_time(const Registry& registry, const kube::Manager& manager) {
  Parts parts;
  for (const auto& entry : manager.caches().entries())
    parts.watches.insert(name_of(entry->collection));
  for (const auto& object : webhook_configurations(published_webhooks(registry), {}, "me"))
    for (const Json& webhook : object.object.get_array("webhooks"))
      parts.webhooks.insert(std::string(webhook.get_string("name")));
  std::vector<std::string> options = cluster_role_options(registry);
  options.insert(options.begin(), "");
  for (const std::string& option : options) {
    const auto role = kube::parse_yaml(cluster_role(registry, option));
    REQUIRE(role);
    for (const Json& rule : role->get_array("rules"))
      for (const Json& group : rule.get_array("apiGroups"))
        for (const Json& resource : rule.get_array("resources"))
          for (const Json& verb : rule.get_array("verbs"))
            parts.rights.insert(option + ": " + verb.as_string() + " " + resource.as_string() +
                                "." + group.as_string());
  }
  return parts;
}

// Returns all parts that the kinds of a registry name, however the registry is used.
Parts named_parts(const Registry& registry) {
  Parts parts;
  for (const KindRegistration& kind : registry) {
    for (const kube::Watch& watch : kind.controller.watches)
      parts.watches.insert(name_of(watch.collection));
    for (const Webhook& webhook : kind.admission.webhooks)
      if (kind.admission.is_published) parts.webhooks.insert(std::string(webhook.name));
    for (const kube::PolicyRule& rule : kind.controller.rules)
      for (const std::string& group : rule.groups)
        for (const std::string& resource : rule.resources)
          for (const std::string& verb : rule.verbs)
            parts.rights.insert((rule.option.empty() ? kind.option : rule.option) + ": " + verb +
                                " " + resource + "." + group);
  }
  return parts;
}

// A job of one pod gets it, with its Service.
void check_v1_job(test::IdleManager& peer, const v1::Framework& framework) {
  const std::string ns = "/namespaces/n/";
  const std::string job =
      R"({"apiVersion":"kubeflow.org/v1","kind":")" + framework.resource.kind +
      R"(","metadata":{"name":"v","namespace":"n","uid":"u1","resourceVersion":"1"},"spec":{")" +
      std::string(framework.replica_specs) +
      R"(":{"Worker":{"replicas":1,"template":{"spec":{"containers":[{"name":")" +
      std::string(framework.container) + R"(","image":"i"}]}}}}}})";
  peer.cache<kube::StoredObject>(all_of(framework.resource)).upsert(job);
  peer.api.on("GET", "/api/v1" + ns + "services/v").always().answer(404, "{}");
  for (const char* kind : {"pods", "services"})
    peer.api.on("POST", "/api/v1" + ns + kind).always().reply([](const auto& request) {
      return kube::ScriptedReply(201, request.body);
    });
  peer.api.on("PATCH", "/apis/kubeflow.org/v1" + ns + framework.resource.plural + "/v/status")
      .always()
      .reply([&job](const auto&) { return kube::ScriptedReply(200, job); });
  CHECK(peer.reconcile(std::string(framework.singular) + "-controller", {"n", "v"}));
  const auto count = [&peer, &ns](const char* kind) {
    return std::ranges::count_if(peer.api.lines(), [&](const std::string& line) {
      return line.starts_with("POST /api/v1" + ns + kind);
    });
  };
  CHECK(count("pods") == 1);
  CHECK(count("services") == (framework.has_services ? 2 : 0));
}

void check_trainjob(test::IdleManager& peer) {
  const std::string job = R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
      "metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1","generation":1},
      "spec":{"runtimeRef":{"name":"r","kind":"TrainingRuntime"}}})";
  const std::string path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status";
  peer.trainjobs().upsert(job);
  std::string status;
  peer.api.on("PATCH", path).always().reply([&](const auto& request) {
    status = request.body;
    return kube::ScriptedReply(200, job);
  });
  CHECK(peer.reconcile("trainjob_controller", {"n", "j"}));
  CHECK_THAT(status, Catch::Contains("not found"));
}

}  // namespace

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a kind that a test registers is watched and reconciled") {
  api.on("GET", kWidgetsPath)
      .answer(200, list_of(R"({"metadata":{"name":"w","namespace":"n","uid":"u1",
                               "resourceVersion":"3"},"spec":{}})"));
  api.on("GET", kWidgetsPath).stream({}).stay_open();
  api.on("GET", kConfigMapsPath).answer(200, list_of(""));
  api.on("GET", kConfigMapsPath).stream({}).stay_open();
  // Its answer enters the cache, and enqueues the owner.
  api.on("POST", kCreatePath)
      .answer(201, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w","namespace":"n",
        "uid":"u2","resourceVersion":"6","labels":{"example.com/widget":"w"},"ownerReferences":[
        {"apiVersion":"example.com/v1","kind":"Widget","name":"w","uid":"u1","controller":true}]}})");
  api.on("PATCH", kStatusPath)
      .answer(200, R"({"kind":"Widget","metadata":{"name":"w","namespace":"n","uid":"u1",
        "resourceVersion":"7"},"spec":{},"status":{"ready":true}})")
      .always();

  Metrics metrics;
  kube::Manager manager(io, client, controllers_of({sample::widget_registration()}),
                        manager_options(), metrics, log);
  manager.start_watching();
  REQUIRE(kube::run_until(io, [&manager] { return manager.is_ready(); }));
  kube::run_task(io, manager.start_workers());
  const auto has_sent = [this](const std::string& line) {
    const auto lines = api.lines();
    return std::any_of(lines.begin(), lines.end(),
                       [&line](const std::string& each) { return each.starts_with(line); });
  };
  REQUIRE(kube::run_until(io, [&] { return has_sent("PATCH " + kStatusPath); }));
  CHECK(has_sent("POST " + kCreatePath));
  metrics.on_collect([&manager] { manager.collect(); });
  CHECK(metrics.render().find("controller=\"widget\"") != std::string::npos);
  kube::run_task(io, manager.drain(std::chrono::milliseconds(0)));
}

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a kind whose CRD is missing is named, and asked for again") {
  api.on("GET", kConfigMapsPath).answer(200, list_of(""));
  api.on("GET", kConfigMapsPath).stream({}).stay_open();
  const test::CapturedErrors captured;
  const kube::Log warnings(kube::LogLevel::kWarn, kube::Log::Format::kText);
  Metrics metrics;
  kube::Manager manager(io, client, controllers_of({sample::widget_registration()}),
                        manager_options(), metrics, warnings);
  manager.start_watching();
  const std::string missing =
      "widgets.example.com (not served: install its CustomResourceDefinition)";
  REQUIRE(kube::run_until(io, [&] { return manager.missing() == missing; }));
  CHECK_FALSE(manager.is_ready());
  api.on("GET", kWidgetsPath).answer(200, list_of(""));
  api.on("GET", kWidgetsPath).stream({}).stay_open();
  REQUIRE(kube::run_until(io, [this] { return clock.timers() > 0; }));
  clock.advance(std::chrono::seconds(60));
  REQUIRE(kube::run_until(io, [&manager] { return manager.is_ready(); }));
  CHECK(manager.missing().empty());
  CHECK(captured.count("kind is not served") == 1);
  CHECK(captured.count("widgets.example.com") == 1);
  kube::run_task(io, manager.drain(std::chrono::milliseconds(0)));
}

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a watch that ends by an exception is reported to the process") {
  api.on("GET", kWidgetsPath)
      .answer(200, list_of(R"({"metadata":{"name":"w","namespace":"n","uid":"u1",
                               "resourceVersion":"3"},"spec":{}})"));
  api.on("GET", kConfigMapsPath).answer(200, list_of(""));
  api.on("GET", kConfigMapsPath).stream({}).stay_open();
  KindRegistration kind = sample::widget_registration();
  kind.controller.watches[0].connect = [](kube::AnyObjectCache& cache, kube::Controller&) {
    dynamic_cast<kube::ObjectCache<kube::StoredObject>&>(cache).add_event_handler(
        [](const auto&, const auto&) { throw std::runtime_error("a bug"); });
  };
  int lost = 0;
  kube::ManagerOptions options = manager_options();
  options.on_task_lost = [&lost] { ++lost; };
  Metrics metrics;
  kube::Manager manager(io, client, controllers_of({kind}), options, metrics, log);
  manager.start_watching();
  CHECK(kube::run_until(io, [&lost] { return lost > 0; }));
  kube::run_task(io, manager.drain(std::chrono::milliseconds(0)));
  CHECK(lost == 1);
}

TEST_CASE_METHOD(kube::test::ScriptedPeer, "its webhook answers without an HTTP server") {
  const Registry registry{sample::widget_registration()};
  AdmissionState state;
  Admission admission(registry[0].admission.handlers, client, state, log);
  AdmissionRequest request;
  request.operation = "CREATE";
  request.object = Json::object();
  AdmissionAnswer answer = kube::run_task(io, admission.review("/validate-widget", request));
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.message == "spec: required");
  request.object.set("spec", Json::object());
  answer = kube::run_task(io, admission.review("/validate-widget", request));
  CHECK(answer.is_allowed);
}

TEST_CASE("its webhook, RBAC rule and CRD are among those to install") {
  Registry registry = production_registry(KindOptions());
  registry.push_back(sample::widget_registration());
  CHECK(configuration_names(registry).contains("validator.example.com"));
  const auto configurations = webhook_configurations(published_webhooks(registry), {}, "me");
  CHECK(configurations.back().key().name == "validator.example.com");
  CHECK_THAT(cluster_role(registry),
             Catch::Contains("# What users create.\n- apiGroups: [example.com]\n"
                             "  resources: [widgets]\n  verbs: [get, list, watch]\n"));
  CHECK(custom_resource_definitions(registry).back().find_path({"metadata"})->get_string("name") ==
        "widgets.example.com");
}

TEST_CASE("the configuration may have a number of its workers") {
  Registry registry = production_registry(KindOptions());
  Configuration configuration;
  configuration.groupKindConcurrency = {{"Widget.example.com", 2}};
  CHECK(concurrency_warnings(configuration, registry).size() == 1);
  registry.push_back(sample::widget_registration());
  CHECK(concurrency_warnings(configuration, registry).empty());
}

TEST_CASE("it is rendered, beside the kinds of production") {
  Registry registry = production_registry(KindOptions());
  registry.push_back(sample::widget_registration());
  const auto render = [&registry](const std::string& yaml) {
    std::istringstream in(yaml);
    std::ostringstream out;
    std::ostringstream err;
    Console console{in, out, err};
    RenderOptions options;
    options.files = {"-"};
    run_render(options, registry, console);
    return out.str() + err.str();
  };
  CHECK(render("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n") ==
        "metadata:\n  name: w\n  namespace: default\n");
  CHECK_THAT(render("apiVersion: example.com/v2\nkind: Widget\nmetadata: {name: w}\n"),
             Catch::StartsWith("Widget w: apiVersion: Unsupported value"));
  CHECK(render("") == "nothing to render: name a file with a TrainJob, JobSet or Widget\n");
}

TEST_CASE("`why` and `logs` know it by its resource's names, and say which kinds they know") {
  Registry registry = production_registry(KindOptions());
  registry.push_back(sample::widget_registration());
  struct Row {
    std::vector<std::string> words;
    const char* kind;
  };
  const Row rows[] = {
      {{"w"}, "TrainJob"},
      {{"trainjob", "w"}, "TrainJob"},
      {{"TrainJobs/w"}, "TrainJob"},
      {{"jobset.jobset.x-k8s.io/w"}, "JobSet"},
      {{"widget/w"}, "Widget"},
      {{"Widgets", "w"}, "Widget"},
      {{"widgets.example.com/w"}, "Widget"},
      {{"pod/w"}, ""},
      {{"widget/"}, ""},
      {{"trainjob/w", "x"}, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const auto target = find_target(
        registry, row.words, [](const KindRegistration& kind) { return kind.why.has_value(); });
    if (*row.kind == '\0') {
      REQUIRE_FALSE(target);
      CHECK_THAT(target.error().message,
                 Catch::EndsWith("write trainjob/NAME or jobset/NAME or widget/NAME"));
      continue;
    }
    REQUIRE(target);
    CHECK(target->resource().kind == row.kind);
    CHECK(target->name == "w");
  }
  const KindRegistration& widget = registry.back();
  const auto state = widget.why->read_state(*kube::parse_json(R"({"status":{"ready":true}})"), "");
  REQUIRE(state);
  CHECK(why(sample::kWidgets, {"n", "w"}, *state, {}, kube::Time()).to_text() ==
        "Widget n/w: Ready\n");
  const auto pod = LogPod::read(
      *kube::parse_json(R"({"metadata":{"name":"p","labels":{"example.com/widget":"w"}}})"),
      *widget.logs);
  REQUIRE(pod);
  CHECK(pod->prefix("c") == "[w-0]");
}

TEST_CASE(
    "a V1 kind that a test brings has a controller, a webhook, rights, a CRD and subcommands") {
  const KindOptions options = all_kinds();
  Registry registry = production_registry(options);
  const Names rights_before = named_parts(registry).rights;
  registry.push_back(v1::job_registration(options, sample::kExampleJob));
  const KindRegistration& example = registry.back();

  test::IdleManager peer(registry);
  check_v1_job(peer, sample::kExampleJob);
  CHECK(std::ranges::any_of(peer.api.log(), [](const kube::ReceivedRequest& request) {
    return request.path.ends_with("/pods") &&
           request.body.find(R"({"name":"RANK","value":"0"})") != std::string::npos;
  }));

  CHECK(minus(named_parts(registry).rights, rights_before)
            .contains("v1: watch examplejobs.kubeflow.org"));
  const Json definition = custom_resource_definitions({example}).front();
  CHECK(definition.get("metadata").get_string("name") == "examplejobs.kubeflow.org");
  const Json* const properties = definition.get("spec").get_array("versions")[0].find_path(
      {"schema", "openAPIV3Schema", "properties", "spec", "properties"});
  REQUIRE(properties);
  Names members;
  for (const auto& [name, schema] : properties->as_object()) members.insert(name);
  CHECK(members == Names{"exampleReplicaSpecs", "nprocPerNode", "runPolicy"});

  AdmissionState state;
  Admission admission(example.admission.handlers, peer.client, state, peer.log);
  AdmissionRequest request;
  request.operation = "CREATE";
  request.object = *kube::parse_yaml(
      "{apiVersion: kubeflow.org/v1, kind: ExampleJob, metadata: {name: v, namespace: n}, "
      "spec: {exampleReplicaSpecs: {}}}");
  const AdmissionAnswer answer = kube::run_task(
      peer.io, admission.review("/validate-kubeflow-org-v1-examplejob", std::move(request)));
  CHECK_THAT(answer.message, Catch::Contains("spec.exampleReplicaSpecs.Worker"));

  const Json job = *kube::parse_yaml(
      "{apiVersion: kubeflow.org/v1, kind: ExampleJob, metadata: {name: v, namespace: n}, "
      "spec: {exampleReplicaSpecs: {Worker: {template: {spec: {containers: [{name: example, "
      "image: i}]}}}}}}");
  const auto rendered = example.render.front().render(job, {});
  REQUIRE(rendered);
  CHECK(rendered->objects.size() == 3);  // with the Service of the job
  const auto report = example.why->read_state(job, "trainer");
  REQUIRE(report);
  CHECK(report->message == "no controller has reconciled this job yet");
}

TEST_CASE("a JobSet's state is the first condition of a list that is true") {
  const auto registry = production_registry(KindOptions());
  const auto read = registry[1].why->read_state;
  struct Row {
    const char* status;
    const char* phase;
    bool is_finished;
    bool is_failed;
  };
  for (
      const Row& row : {
          Row{"{}", "", false, false},
          Row{R"({"replicatedJobsStatus":[{"name":"a"}]})", "Active", false, false},
          Row{R"({"conditions":[{"type":"Suspended","status":"True","reason":"r","message":"m"}]})",
              "Suspended", false, false},
          Row{R"({"conditions":[{"type":"Suspended","status":"False","reason":"r","message":"m"},
                 {"type":"Completed","status":"True","reason":"r","message":"m"}]})",
              "Completed", true, false},
          Row{R"({"conditions":[{"type":"Failed","status":"True","reason":"r","message":"m"}]})",
              "Failed", true, true},
      }) {
    CAPTURE(row.status);
    const auto state =
        read(*kube::parse_json(std::string(R"({"metadata":{"name":"j"},"spec":{},"status":)") +
                               row.status + "}"),
             "");
    REQUIRE(state);
    CHECK(state->phase == row.phase);
    CHECK(state->is_finished == row.is_finished);
    CHECK(state->is_failed == row.is_failed);
  }
}

TEST_CASE("a controller of one namespace watches nothing outside of it, and a Role is enough") {
  KindOptions options;
  options.configuration.namespaced = true;
  test::IdleManager peer(options);
  const auto kinds = watched(peer.manager);
  CHECK(kinds.contains("trainingruntimes"));
  CHECK_FALSE(kinds.contains("clustertrainingruntimes"));
  CHECK(peer.made.find("pod") == peer.made.end());  // exclusive placement reads nodes
  const std::string role = namespaced_role(production_registry(options));
  CHECK_THAT(role, Catch::StartsWith("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"));
  CHECK_THAT(role, Catch::Contains("  resources: [trainingruntimes]\n"));
  CHECK_THAT(role,
             Catch::Contains("  resources: [leases]\n  resourceNames: [trainer.kubeflow.org]\n"));
  for (const char* outside : {"clustertrainingruntimes", "webhookconfigurations", "priorityclasses",
                              "reviews", "6d4f6a47.jobset.x-k8s.io"})
    CHECK_THAT(role, !kube::test::contains(outside));
}

TEST_CASE("a controller of one namespace says how a job names a runtime of it") {
  KindOptions options;
  options.configuration.namespaced = true;
  test::IdleManager peer(options);
  const std::string job = R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
      "metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1","generation":1},
      "spec":{"runtimeRef":{"name":"r"}}})";
  peer.trainjobs().upsert(job);
  std::string status;
  peer.api.on("PATCH", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status")
      .reply([&](const kube::ReceivedRequest& request) {
        status = request.body;
        return kube::ScriptedReply(200, job);
      });
  CHECK(peer.reconcile("trainjob_controller", {"n", "j"}));
  CHECK_THAT(status, Catch::Contains("write spec.runtimeRef.kind: TrainingRuntime"));
  for (const std::string& line : peer.api.lines())
    CHECK_THAT(line, !Catch::Contains("clustertrainingruntimes"));
}

TEST_CASE("rights that few installations need are in ClusterRoles of their own") {
  const Registry registry = production_registry(KindOptions());
  CHECK(cluster_role_options(registry) ==
        std::vector<std::string>{"legacy-finalizers", "finished-marker", "coscheduling", "volcano",
                                 "workload"});
  const std::string usual = cluster_role(registry);
  CHECK_THAT(usual, !Catch::Contains("podgroups"));
  CHECK_THAT(usual, Catch::Contains("  resources: [trainingruntimes, clustertrainingruntimes]\n"
                                    "  verbs: [get, list, watch]\n"));
  CHECK_THAT(cluster_role(registry, "volcano"),
             Catch::Contains("  name: kubeflow-trainer-volcano\n") &&
                 Catch::Contains("- apiGroups: [scheduling.volcano.sh]\n"
                                 "  resources: [podgroups]\n"
                                 "  verbs: [create, get, patch]\n") &&
                 !Catch::Contains("scheduling.x-k8s.io"));
  // A right to patch any webhook configuration would be one to all objects of the cluster.
  std::string names;
  for (const std::string& name : configuration_names(registry))
    names += (names.empty() ? "" : ", ") + name;
  CHECK_THAT(usual, Catch::Contains("  resources: [mutatingwebhookconfigurations, "
                                    "validatingwebhookconfigurations]\n"
                                    "  resourceNames: [" +
                                    names + "]\n  verbs: [patch]\n"));
}

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "watches, webhooks and RBAC rules that only one kind has are absent without it") {
  struct Row {
    const char* controller;
    std::set<std::string> unwatched;
    std::set<std::string> configurations;  // the absent configurations
    const char* right;                     // the absent right
  };
  const Row rows[] = {
      {"trainjob_controller",
       {"trainjobs", "trainingruntimes", "clustertrainingruntimes"},
       {"defaulter.trainer.kubeflow.org", "validator.trainer.kubeflow.org"},
       "tokenreviews"},
      {"jobset", {"services"}, {"jobset.trainer.kubeflow.org"}, "jobsets/status"},
      {"pod", {}, {"pods.jobset.trainer.kubeflow.org"}, "pods.jobset.trainer.kubeflow.org"},
  };
  const Registry whole = production_registry(test::own_jobsets());
  Metrics metrics;
  const kube::Manager all(io, client, controllers_of(whole), manager_options(), metrics, log);
  for (const Row& row : rows) {
    CAPTURE(row.controller);
    const Registry rest = without(row.controller);
    REQUIRE(rest.size() == 2);
    const kube::Manager manager(io, client, controllers_of(rest), manager_options(), metrics, log);
    std::set<std::string> unwatched;
    const auto before = watched(all);
    const auto after = watched(manager);
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::inserter(unwatched, unwatched.begin()));
    CHECK(unwatched == row.unwatched);
    std::set<std::string> gone;
    const auto names = configuration_names(whole);
    const auto left = configuration_names(rest);
    std::set_difference(names.begin(), names.end(), left.begin(), left.end(),
                        std::inserter(gone, gone.begin()));
    CHECK(gone == row.configurations);
    CHECK_THAT(cluster_role(whole), kube::test::contains(row.right));
    CHECK_THAT(cluster_role(rest), !kube::test::contains(row.right));
  }
}

TEST_CASE(
    "each kind can be taken out of the registry: what only it names is gone, the rest works") {
  const Registry whole = production_registry(all_kinds());
  CHECK(whole.size() == 9);
  test::IdleManager all(whole);
  const Parts before = parts_at_run_time(whole, all.manager);
  const Parts named = named_parts(whole);
  test::IdleManager none{Registry()};
  // A process needs these parts whatever its kinds are; a process of TrainJobs alone shows them.
  const Registry single{whole.front()};
  const Names of_process =
      minus(parts_at_run_time(single, none.manager).rights, named_parts(single).rights);
  CHECK(before.watches == named.watches);
  CHECK(minus(named.rights, before.rights).empty());
  for (const KindRegistration& kind : whole) {
    INFO("without " << kind.controller.name);
    const Registry rest = without(kind.controller.name, all_kinds());
    REQUIRE(rest.size() == 8);
    test::IdleManager peer(rest);
    const Parts after = parts_at_run_time(rest, peer.manager);
    const Parts left = named_parts(rest);
    CHECK(after.watches == left.watches);
    CHECK(minus(before.webhooks, after.webhooks) == minus(named.webhooks, left.webhooks));
    CHECK(minus(after.webhooks, left.webhooks).empty());
    CHECK(minus(left.rights, after.rights).empty());
    // Each right is gone that no kind of the rest names.
    for (const std::string& right : minus(named.rights, left.rights)) {
      INFO(right);
      CHECK(after.rights.contains(right) == of_process.contains(right));
    }
    const v1::Framework& framework =
        *v1::find_framework(kind.controller.name == "jaxjob-controller" ? "PaddleJob" : "JAXJob");
    check_v1_job(peer, framework);
    if (kind.controller.name != "trainjob_controller") check_trainjob(peer);
    // This process does not answer its webhooks' requests either.
    for (const KindRegistration& each : rest)
      for (const WebhookHandler& handler : each.admission.handlers)
        for (const Webhook& webhook : kind.admission.webhooks) CHECK(handler.path != webhook.path);
  }
}
