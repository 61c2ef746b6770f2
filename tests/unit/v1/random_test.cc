// Jobs of every kind have seeded lives in which everything goes wrong: pods fail, users edit,
// scale, delete and create again, caches are late, writes are refused or lose their answers, and
// the controller ends at any write. No pod is made twice, a finished job runs no further, nothing
// is left behind, and once nothing goes wrong any more each job comes to its end.
#include <fmt/format.h>

#include <random>
#include <set>

#include "kube/model/text.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

constexpr int kSteps = 28;
constexpr int kMaxRounds = 60;  // the longest time until a job ends if nothing goes wrong

class Life {
 public:
  Life(const Framework& framework, unsigned seed);

  void run();  // with faults
  void end();  // without it; the job has ended or is deleted afterwards
  void check();

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

  Json make();
  Fate draw(const kube::Resource& resource);
  void step();
  void play_user();
  void play_pod();
  void play_gang();
  void release_pods();
  void suspend(bool is_suspended);
  void release(const std::string& pod);
  void end_pod(const std::string& pod, std::string_view phase, std::optional<int> code);
  void check_new_pod(const Json& pod);

  const Json& job() const { return world_.at(key_); }
  bool has_job() const { return world_.has(key_); }
  bool has_dynamic_workers() const { return job().get("spec").get_bool("enableDynamicWorker"); }
  bool is_finished() const;
  bool is_of_job(const Json& object) const;
  // Returns the pods that the job's spec asks for.
  std::set<std::string> pod_names() const;

  const Framework& framework_;
  const std::string key_;
  std::mt19937 random_;
  World world_;
  bool is_elastic_ = false;
  int deleted_ = 0;
  std::set<std::string> done_;  // pods that succeeded, and that no user has deleted, in this run
};

Life::Life(const Framework& framework, unsigned seed)
    : framework_(framework), key_(framework.resource.kind + "/p"), random_(seed) {
  world_.is_graceful = below(2) == 0;
  world_.settings.gang_scheduler =
      one_of(std::vector<std::string>{"", "", "volcano", "my-scheduler"});
  REQUIRE(world_.apply(make()) == 201);
  world_.seen = world_.objects;
  world_.fate = [this](const kube::Resource& resource) { return draw(resource); };
  world_.on_pod = [this](const Json& pod) { check_new_pod(pod); };
}

Json Life::make() {
  const std::string& kind = framework_.resource.kind;
  const std::string worker = fmt::format("Worker*{}", 1 + below(3));
  const std::string roles = kind == "MPIJob"       ? "Launcher " + worker
                            : kind == "XGBoostJob" ? "Master " + worker
                            : kind == "JAXJob"     ? worker
                            : below(2) ? (kind == "TFJob" ? "Chief " : "Master ") + worker
                                       : worker;
  is_elastic_ = kind == "MPIJob" || ((kind == "PyTorchJob" || kind == "TFJob") && below(2) == 0);
  std::string more;
  if (is_elastic_ && kind == "TFJob") more = "enableDynamicWorker: true, ";
  if (is_elastic_ && kind == "PyTorchJob")
    more = fmt::format("elasticPolicy: {{minReplicas: 1, maxReplicas: 4{}}}, ",
                       below(2) ? ", metrics: []" : "");
  const std::vector<std::string> restarts{"Always", "OnFailure", "Never", "ExitCode"};
  return make_job(
      kind, roles,
      fmt::format("{{{}runPolicy: {{cleanPodPolicy: {}, suspend: {}{}{}{}}}, roles: {{Worker: "
                  "{{restartPolicy: {}}}}}}}",
                  more, one_of(std::vector<std::string>{"All", "Running", "None"}), below(4) == 0,
                  below(2) ? fmt::format(", backoffLimit: {}", below(4)) : "",
                  below(3) == 0 ? ", activeDeadlineSeconds: 200" : "",
                  below(6) == 0 ? ", ttlSecondsAfterFinished: 30" : "", one_of(restarts)));
}

Fate Life::draw(const kube::Resource&) {
  switch (below(12)) {
    case 0:
      return Fate::kConflict;
    case 1:
      return Fate::kFailed;
    case 2:
      return Fate::kLost;
    default:
      return Fate::kDone;
  }
}

bool Life::is_finished() const {
  const std::string text = world_.conditions();
  return text.ends_with("Succeeded") || text.ends_with("Failed");
}

std::set<std::string> Life::pod_names() const {
  std::set<std::string> names;
  for (const auto& [role, spec] : read(job()).spec.replicaSpecs)
    for (std::int64_t i = 0; i < spec.replicas.value_or(1); ++i)
      names.insert(role == framework_.lone_role ? "p-launcher"
                                                : fmt::format("p-{}-{}", kube::to_lower(role), i));
  return names;
}

// The pod is not of an earlier job of the same name.
bool Life::is_of_job(const Json& object) const {
  return has_job() &&
         kube::ObjectMeta::of(object).controller()->uid == job().get("metadata").get_string("uid");
}

// This is the state at the moment of the write, whatever the controller has seen of the job.
void Life::check_new_pod(const Json& pod) {
  const std::string name(pod.get("metadata").get_string("name"));
  INFO(name);
  if (!is_of_job(pod)) return;  // its owner is gone, and soon the pod is, too
  CHECK_FALSE(is_finished());
  CHECK_FALSE(done_.contains(name));
}

void Life::suspend(bool is_suspended) {
  done_.clear();  // they run again after it
  world_.objects[key_]["spec"]["runPolicy"].set("suspend", is_suspended);
}

void Life::end_pod(const std::string& pod, std::string_view phase, std::optional<int> code) {
  world_.set_pod(pod, phase, code);
  const Json& object = world_.at("Pod/" + pod);
  if (phase == "Succeeded" && is_of_job(object) &&
      !object.get("metadata").find("deletionTimestamp"))
    done_.insert(pod);
}

void Life::release(const std::string& pod) {
  world_.release("Pod/" + pod);
}

void Life::release_pods() {
  for (const std::string& pod : world_.names("Pod"))
    if (world_.at("Pod/" + pod).get("metadata").find("deletionTimestamp")) release(pod);
}

void Life::play_pod() {
  const auto pods = world_.names("Pod");
  if (pods.empty()) return;
  const std::string& pod = one_of(pods);
  const std::string_view phase = world_.at("Pod/" + pod).get("status").get_string("phase");
  const int what = below(6);
  if (what == 0) {
    done_.erase(pod);
    return world_.remove("Pod/" + pod);
  }
  if (phase == "Succeeded" || phase == "Failed") return;
  switch (what) {
    case 1:
      return end_pod(pod, "Failed", one_of(std::vector<int>{1, 137}));
    case 2:
      return end_pod(pod, "Failed", {});
    case 3:
      return end_pod(pod, "Succeeded", 0);
    case 4:
      return world_.set_pod(pod, "Running", 1, 1 + below(2));
    default:
      return world_.set_pod(pod, "Running");
  }
}

void Life::play_gang() {
  if (world_.has("PodGroup/p"))
    world_.patch("PodGroup/p",
                 yaml(fmt::format("status: {{phase: {}}}", one_of(std::vector<std::string>{
                                                               "Pending", "Inqueue", "Running"}))));
}

void Life::play_user() {
  if (!has_job()) {
    // A job of the same name may be made while objects of the first one still exist.
    if (below(4) != 0) return;
    Json job = make();
    job["metadata"].set("uid", fmt::format("job-uid-{}", ++deleted_));
    REQUIRE(world_.apply(std::move(job)) == 201);
    done_.clear();
    return;
  }
  if (below(12) == 0) {
    suspend(below(2) == 0);
  }
  if (is_elastic_ && below(6) == 0) {
    done_.clear();  // a worker that is taken out and comes back runs again
    world_.patch(key_, yaml(fmt::format("spec: {{{}: {{Worker: {{replicas: {}}}}}}}",
                                        framework_.replica_specs, 1 + below(4))));
  }
  if (below(60) == 0) world_.objects.erase(key_);
}

void Life::step() {
  play_pod();
  play_gang();
  play_user();
  if (below(6) == 0) release_pods();
  if (below(4) == 0) world_.collect_garbage();
  if (below(5) == 0) world_.now = world_.now + std::chrono::seconds(20);
  for (const std::string& kind : {framework_.resource.kind, std::string("Pod"),
                                  std::string("Service"), std::string("PodGroup")})
    if (below(2) == 0) world_.sync(kind);
  world_.kill_at = below(4) == 0 ? world_.writes + 1 + below(4) : std::numeric_limits<int>::max();
  // If the controller takes the job for suspended, it deletes its pods; then the job runs again.
  const auto seen = world_.seen->find(key_);
  if (seen != world_.seen->end() && read(seen->second).is_suspended()) done_.clear();
  world_.reconcile(key_);
}

void Life::run() {
  for (int i = 0; i < kSteps; ++i) step();
}

void Life::end() {
  world_.fate = nullptr;
  world_.kill_at = std::numeric_limits<int>::max();
  if (has_job() && read(job()).is_suspended()) suspend(false);
  world_.settle();
  for (int round = 0; has_job() && !is_finished(); ++round) {
    INFO("round " << round << ": " << world_.conditions());
    REQUIRE(round < kMaxRounds);
    if (world_.has("PodGroup/p")) world_.patch("PodGroup/p", yaml("status: {phase: Running}"));
    release_pods();
    for (const std::string& pod : world_.names("Pod")) {
      const std::string phase(world_.at("Pod/" + pod).get("status").get_string("phase"));
      if (phase == "Pending") world_.set_pod(pod, "Running");
      if (phase == "Running") end_pod(pod, "Succeeded", 0);
      // Dynamic workers that fail do not end their job, and are not replaced by themselves.
      if (phase == "Failed" && has_dynamic_workers()) release(pod);
    }
    world_.settle();
  }
}

void Life::check() {
  world_.collect_garbage();
  std::map<std::string, std::string> names;
  for (const auto& [key, object] : world_.objects) names[kube::ObjectMeta::of(object).uid] = key;
  for (const auto& [key, object] : world_.objects) {
    if (key == key_) continue;
    INFO(key);
    const kube::ObjectMeta meta = kube::ObjectMeta::of(object);
    REQUIRE(meta.controller());
    CHECK((meta.deletion_timestamp || names.contains(meta.controller()->uid)));
  }
  if (!has_job()) return;
  release_pods();
  world_.settle();
  const auto pods = world_.names("Pod");
  const Json status = job().get("status");
  const Json& run_policy = job().get("spec").get("runPolicy");
  const std::string policy(run_policy.get_string("cleanPodPolicy"));
  const bool has_ttl = run_policy.find("ttlSecondsAfterFinished") != nullptr;
  const std::set<std::string> wanted = pod_names();
  const bool has_autoscaler = job().get("spec").get("elasticPolicy").find("metrics") != nullptr;
  bool is_running = false;
  for (const std::string& pod : pods) {
    INFO(pod);
    const Json& object = world_.at("Pod/" + pod);
    const std::string_view phase = object.get("status").get_string("phase");
    const bool is_over = phase == "Succeeded" || phase == "Failed";
    is_running |= !is_over;
    CHECK(policy != "All");
    CHECK((is_over || policy == "None" || object.get("spec").find("activeDeadlineSeconds")));
    // Pods that an autoscaler takes out after the end may end by themselves.
    CHECK((is_over || wanted.contains(pod) || has_autoscaler));
  }
  for (const std::string& service : world_.names("Service")) {
    INFO(service);
    CHECK(policy != "All");
    CHECK((policy == "None" ? service != "p" || is_running : world_.has("Pod/" + service)));
  }
  CHECK_FALSE(world_.has("PodGroup/p"));
  world_.advance(1'000);
  if (has_ttl) {
    CHECK_FALSE(has_job());
    return;
  }
  CHECK(job().get("status") == status);
  CHECK(world_.names("Pod") == pods);
}

}  // namespace

TEST_CASE("random lives of jobs of every kind") {
  for (const Framework* framework : frameworks())
    for (unsigned seed = 0; seed < static_cast<unsigned>(trainer::test::times(1000)); ++seed) {
      INFO(framework->resource.kind << " seed " << seed);
      Life life(*framework, seed);
      life.run();
      life.end();
      life.check();
    }
}
