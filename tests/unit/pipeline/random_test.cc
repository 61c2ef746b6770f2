// 1,000 random runtimes, jobs and patches: what must hold for all of them.
#include <algorithm>
#include <random>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;

// Makes documents that are likely to meet: few names, so that patches often hit what runtimes have.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}

  bool maybe(unsigned one_in = 2) { return random_() % one_in == 0; }
  std::int64_t number(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(below));
  }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(number(static_cast<std::int64_t>(choices.size())))];
  }

  Json env() {
    Json list = Json::array();
    for (const char* name : {"A", "B", "PET_RDZV_ID", "FLUX_QUEUE_POLICY"})
      if (maybe())
        list.push_back(Json::object({{"name", name}, {"value", std::to_string(number(9))}}));
    return list;
  }

  Json resources() {
    Json out = Json::object();
    for (const char* list : {"limits", "requests"})
      for (const char* kind : {"cpu", "memory", "nvidia.com/gpu"})
        if (maybe(3)) out[list].set(kind, number(5));
    return out;
  }

  Json container(const std::string& name) {
    Json out = Json::object({{"name", name}, {"image", "i:1"}, {"x-unknown", number(100)}});
    if (maybe()) out.set("env", env());
    if (maybe()) out.set("resources", resources());
    if (maybe(3)) out.set("command", Json::array({"run", "it"}));
    if (maybe(3)) out.set("ports", Json::array({Json::object({{"containerPort", 80}})}));
    if (maybe(3))
      out.set("volumeMounts",
              Json::array({Json::object({{"name", "initializer"}, {"mountPath", "/w"}})}));
    return out;
  }

  Json pod_spec(const std::string& main) {
    Json out =
        Json::object({{"containers", Json::array({container(main)})}, {"x-unknown", number(100)}});
    if (maybe(3)) out["containers"].push_back(container("side"));
    if (maybe(3)) out.set("initContainers", Json::array({container("init")}));
    if (maybe(3)) out.set("nodeSelector", Json::object({{"pool", "a"}}));
    if (maybe(3))
      out.set("volumes",
              Json::array({Json::object({{"name", "initializer"}, {"emptyDir", Json::object()}})}));
    return out;
  }

  Json policy() {
    Json out = yaml(of<std::string>(
        {"{}", "{torch: {}}", "{mpi: {}}", "{mpi: {runLauncherAsNode: true}}", "{jax: {}}",
         "{xgboost: {}}", "{flux: {}}", "{mpi: {mpiImplementation: MPICH}}",
         "{torch: {envInjection: {targets: [{jobName: node, containerNames: [side]}]}}}"}));
    if (maybe()) out.set("numNodes", number(4));
    return out;
  }

  Json runtime() {
    Json jobs = Json::array();
    for (const char* name : {"dataset-initializer", "node", "launcher", "other"}) {
      if (!maybe() && !(jobs.empty() && std::string(name) == "other")) continue;
      const std::string step =
          of<std::string>({"", "trainer", "dataset-initializer", "other-step"});
      Json job = Json::object({{"name", name}});
      if (!jobs.empty() && maybe())
        job.set("dependsOn",
                Json::array({Json::object({{"name", jobs.as_array().back().get_string("name")},
                                           {"status", of<std::string>({"Ready", "Complete"})}})}));
      if (maybe(4)) job.set("replicas", number(3));
      Json& template_ = job["template"];
      if (!step.empty()) template_["metadata"]["labels"].set(kAncestorLabel, step);
      template_["spec"]["template"].set("spec",
                                        pod_spec(step == "dataset-initializer" ? step : "node"));
      if (maybe(3)) template_["spec"].set("parallelism", number(4));
      jobs.push_back(std::move(job));
    }
    Json spec = Json::object();
    spec["template"]["spec"].set("replicatedJobs", std::move(jobs));
    if (maybe(4)) spec["template"]["spec"]["network"].set("subdomain", "hosts");
    if (!maybe(4)) spec.set("mlPolicy", policy());
    if (maybe(3))
      spec.set("podGroupPolicy", yaml(of<std::string>({"{coscheduling: {}}", "{volcano: {}}"})));
    return Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                         {"kind", of<std::string>({"ClusterTrainingRuntime", "TrainingRuntime"})},
                         {"metadata", Json::object({{"name", "rt"}})},
                         {"spec", std::move(spec)}});
  }

  Json patch() {
    Json pod = Json::object();
    if (maybe()) pod.set("nodeSelector", Json::object({{of<std::string>({"pool", "zone"}), "b"}}));
    if (maybe(3)) pod.set("tolerations", yaml("[{key: k, operator: Exists}]"));
    if (maybe(3))
      pod.set("volumes", yaml("[{name: initializer, persistentVolumeClaim: {claimName: c}}]"));
    if (maybe(3)) {
      Json one = Json::object({{"name", of<std::string>({"node", "side", "missing"})}});
      if (maybe()) one.set("volumeMounts", yaml("[{name: initializer, mountPath: /p}]"));
      if (maybe(3)) one.set("env", env());
      pod.set("containers", Json::array({std::move(one)}));
    }
    Json job = Json::object({{"name", of<std::string>({"node", "launcher", "other", "nowhere"})}});
    job["template"]["spec"]["template"].set("spec", std::move(pod));
    if (maybe(3)) job["template"]["spec"]["template"]["metadata"]["labels"].set("l", "v");
    Json out = Json::object();
    out["template"]["spec"].set("replicatedJobs", Json::array({std::move(job)}));
    return out;
  }

  Json trainer() {
    Json out = Json::object();
    if (maybe()) out.set("numNodes", number(4));
    if (maybe()) out.set("env", env());
    if (maybe()) out.set("resourcesPerNode", resources());
    if (maybe(3)) out.set("numProcPerNode", 1 + number(4));
    if (maybe(3)) out.set("image", "mine:2");
    if (maybe(3))
      out.set("command",
              of<Json>({Json::array({"tune", "run"}), Json::array({"python"}), Json::array()}));
    if (maybe(3)) out.set("args", Json::array({"x"}));
    return out;
  }

  Json job() {
    Json spec = Json::object({{"runtimeRef", Json::object({{"name", "rt"}})}});
    if (!maybe(4)) spec.set("trainer", trainer());
    if (maybe(4)) spec["initializer"]["dataset"].set("storageUri", "hf://a/b");
    for (const char* manager : {"acme.io/a", "acme.io/b"})
      if (maybe(3))
        spec["runtimePatches"].push_back(
            Json::object({{"manager", manager}, {"trainingRuntimeSpec", patch()}}));
    return Json::object(
        {{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
         {"kind", "TrainJob"},
         {"metadata", Json::object({{"name", "j"}, {"namespace", "team"}, {"uid", "u"}})},
         {"spec", std::move(spec)}});
  }

 private:
  std::mt19937 random_;
};

// All settings of a runtime's container must still be there, except if another may set them.
void check_container(const Json& before, const Json& after) {
  CHECK(after.get_int("x-unknown") == before.get_int("x-unknown"));
  for (const Json& variable : before.get_array("env"))
    CHECK(std::any_of(
        after.get_array("env").begin(), after.get_array("env").end(),
        [&](const Json& one) { return one.get_string("name") == variable.get_string("name"); }));
  for (const auto& kind : {"limits", "requests"})
    for (const auto& [name, amount] : kube::read_resources(before, kind))
      CHECK(kube::read_resources(after, kind).contains(name));
  std::vector<std::string> names;
  for (const Json& variable : after.get_array("env"))
    names.emplace_back(variable.get_string("name"));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());  // no name twice
}

void check_built(const TrainJob& job, const Runtime& runtime, const Built& result) {
  const auto& jobs = runtime.spec.template_->spec->replicatedJobs;
  const auto& built_jobs = result.jobset.find("spec")->get_array("replicatedJobs");
  REQUIRE(built_jobs.size() == jobs.size());  // Kueue counts them
  REQUIRE(result.pod_sets.size() == jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK(built_jobs[i].get_string("name") == jobs[i].name);
    CHECK(result.pod_sets[i].name == jobs[i].name);
    const Json& spec = *built_jobs[i].find_path({"template", "spec"});
    CHECK(spec.get_int("parallelism", -1) == result.pod_sets[i].count);
    CHECK(spec.get_int("completions", -1) == result.pod_sets[i].count);
    CHECK(result.pod_sets[i].endpoints().size() ==
          static_cast<std::size_t>(result.pod_sets[i].count *
                                   std::max(result.pod_sets[i].replicas, 0)));
    const Json& before = *jobs[i].template_.find_path({"spec", "template", "spec"});
    const Json& after = *spec.find_path({"template", "spec"});
    CHECK(after.get_int("x-unknown") == before.get_int("x-unknown"));
    CHECK(after.get_array("containers").size() == before.get_array("containers").size());
    for (const char* list : {"containers", "initContainers"})
      for (const Json& container : before.get_array(list)) {
        const Json* found =
            kube::find_any_container(*spec.find("template"), container.get_string("name"));
        REQUIRE(found != nullptr);
        check_container(container, *found);
      }
  }
  const auto& user_env = job.spec.trainer ? job.spec.trainer->env : std::vector<Json>{};
  for (std::size_t i = 0; i < result.pod_sets.size(); ++i)
    if (result.pod_sets[i].ancestor == "trainer")
      for (const Json& variable : user_env)
        CHECK(env_value(container_in(result, result.pod_sets[i].name),
                        variable.get_string("name")) == variable.get_string("value"));
  for (const DependentObject& one : result.dependents) {
    if (one.resource.kind != "PodGroup") continue;
    std::int64_t pods = 0;
    for (const PodSet& set : result.pod_sets) pods += set.count * std::max(set.replicas, 0);
    CHECK(one.object.find("spec")->get_int("minMember") <= std::max<std::int64_t>(pods, 1));
  }
}

TEST_CASE("with any runtime, job and patches", "[random]") {
  int built_jobs = 0;
  int refused_jobs = 0;
  for (std::uint32_t seed = 1; seed <= 1000; ++seed) {
    Dice dice(seed);
    const Json runtime_object = dice.runtime();
    const Json job_object = dice.job();
    CAPTURE(seed);
    INFO(kube::print_json(runtime_object));
    INFO(kube::print_json(job_object));
    const Runtime rt = runtime(runtime_object);
    const TrainJob job = trainjob(job_object);
    const kube::FieldErrors errors = validate_trainjob(job, nullptr, rt);
    const auto result = build(job, rt, production());
    // A job that is admitted can be built. An error of one that cannot be built says where it is.
    if (errors.empty()) REQUIRE(result);
    for (const kube::FieldError& error : errors) CHECK_FALSE(error.path.empty());
    if (!result) {
      ++refused_jobs;
      REQUIRE_FALSE(result.error().empty());
      continue;
    }
    ++built_jobs;
    check_built(job, rt, *result);
    const auto again = build(job, rt, production());
    REQUIRE(again);
    CHECK(again->jobset == result->jobset);  // a repeated apply writes the same
    Json stored = result->jobset;
    apply_schema_defaults(stored);
    CHECK(kube::to_string(check_schema(stored)) == "");
  }
  // The random choices are useful only while they hit both.
  CHECK(built_jobs > 400);
  CHECK(refused_jobs > 100);
}

}  // namespace
}  // namespace trainer::test
