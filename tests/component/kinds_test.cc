// Kinds are registrations: one that tests bring, and production's with one taken out.
#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <set>
#include <stdexcept>

#include "controller/admission/admission.hh"
#include "controller/process/metrics.hh"
#include "controller/registration/cluster_role.hh"
#include "kube/client/task_group.hh"
#include "kube/client/work_queue.hh"
#include "kube/manager/worker_pool.hh"
#include "kube/model/json_text.hh"
#include "tests/component/captured_errors.hh"
#include "tests/component/idle_manager.hh"
#include "tests/component/sample_kind/widget_kind.hh"
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

kube::Task<kube::Result<kube::Requeue>> abort_first(int& reconciles) {
  if (++reconciles == 1) throw boost::system::system_error(kube::asio::error::operation_aborted);
  co_return kube::Requeue{};
}

Registry without(const std::string& controller) {
  Registry registry = production_registry(test::own_jobsets());
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

}  // namespace

TEST_CASE_METHOD(test::ScriptedPeer, "a kind that a test registers is watched and reconciled") {
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

TEST_CASE_METHOD(test::ScriptedPeer, "a kind whose CRD is missing is named, and asked for again") {
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

TEST_CASE_METHOD(test::ScriptedPeer,
                 "a watch that ends by an exception is reported to the process") {
  api.on("GET", kWidgetsPath)
      .answer(200, list_of(R"({"metadata":{"name":"w","namespace":"n","uid":"u1",
                               "resourceVersion":"3"},"spec":{}})"));
  api.on("GET", kConfigMapsPath).answer(200, list_of(""));
  api.on("GET", kConfigMapsPath).stream({}).stay_open();
  KindRegistration kind = sample::widget_registration();
  kind.controller.watches[0].connect = [](kube::AnyObjectCache& cache, kube::Controller&) {
    cache.add_change_handler([] { throw std::runtime_error("a bug"); });
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

TEST_CASE_METHOD(test::ScriptedPeer, "a reconcile that is aborted without reason ends no worker") {
  Metrics metrics;
  kube::WorkQueue queue(io, clock);
  int reconciles = 0;
  kube::Reconcile reconcile = [&reconciles](const kube::ObjectKey&) {
    return abort_first(reconciles);
  };
  kube::WorkerPool pool{"widget", queue, reconcile, metrics, log};
  kube::TaskGroup group(io.get_executor(), [](auto, std::string_view what) { FAIL(what); });
  kube::start_workers(group, pool, 1);
  queue.add({"n", "w"});
  REQUIRE(kube::run_until(io, [&] { return reconciles == 1 && clock.timers() > 0; }));
  clock.advance(std::chrono::seconds(60));
  CHECK(kube::run_until(io, [&reconciles] { return reconciles == 2; }));
  group.cancel();
  kube::run_task(io, group.join());
}

TEST_CASE_METHOD(test::ScriptedPeer, "its webhook answers without an HTTP server") {
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

TEST_CASE_METHOD(test::ScriptedPeer,
                 "watches, webhooks and RBAC rules that only one kind has are absent without it") {
  struct Row {
    const char* controller;
    std::set<std::string> unwatched;
    std::set<std::string> configurations;  // that are absent
    const char* right;                     // that is absent
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
    CHECK_THAT(cluster_role(whole), Catch::Contains(row.right));
    CHECK_THAT(cluster_role(rest), !Catch::Contains(row.right));
  }
}
