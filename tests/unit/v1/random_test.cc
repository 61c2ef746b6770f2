// Seeded runs of jobs of every kind, with pods that fail, users who edit, and a controller that
// ends at any write: no pod is made twice, a finished job runs no further, nothing is left behind.
#include <fmt/format.h>

#include <random>

#include "tests/support/sanitizer.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

struct Run {
  explicit Run(unsigned seed) : random(seed) {}

  int below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

  Json job(const Framework& framework) {
    const std::string& kind = framework.resource.kind;
    const std::string worker = fmt::format("Worker*{}", 1 + below(3));
    const std::string roles = kind == "MPIJob"       ? "Launcher " + worker
                              : kind == "XGBoostJob" ? "Master " + worker
                              : kind == "JAXJob"     ? worker
                              : below(2) ? (kind == "TFJob" ? "Chief " : "Master ") + worker
                                         : worker;
    const std::vector<std::string> restarts{"Always", "OnFailure", "Never", "ExitCode"};
    return make_job(
        kind, roles,
        fmt::format("{{runPolicy: {{cleanPodPolicy: {}, suspend: {}{}{}}}, roles: {{Worker: "
                    "{{restartPolicy: {}}}}}}}",
                    one_of(std::vector<std::string>{"All", "Running", "None"}), below(4) == 0,
                    below(2) ? fmt::format(", backoffLimit: {}", below(4)) : "",
                    below(3) == 0 ? ", activeDeadlineSeconds: 60" : "", one_of(restarts)));
  }

  std::mt19937 random;
};

void play_pod(Run& run, World& world) {
  const auto pods = world.names("Pod");
  if (pods.empty()) return;
  const std::string& pod = run.one_of(pods);
  const std::string_view phase = world.at("Pod/" + pod).get("status").get_string("phase");
  if (phase == "Succeeded" || phase == "Failed") return;
  switch (run.below(6)) {
    case 0:
      return world.set_pod(pod, "Failed", run.one_of(std::vector<int>{1, 137}));
    case 1:
      return world.set_pod(pod, "Failed");
    case 2:
      return world.set_pod(pod, "Succeeded", 0);
    case 3:
      return world.set_pod(pod, "Running", 1, 1 + run.below(2));
    case 4:
      return world.remove("Pod/" + pod);
    default:
      return world.set_pod(pod, "Running");
  }
}

bool is_finished(const World& world) {
  const std::string text = world.conditions();
  return text.ends_with("Succeeded") || text.ends_with("Failed");
}

void play(const Framework& framework, unsigned seed) {
  Run run(seed);
  World world;
  world.is_graceful = run.below(2) == 0;
  const std::string key = framework.resource.kind + "/p";
  REQUIRE(world.apply(run.job(framework)) == 201);
  for (int step = 0; step < 40 && !is_finished(world); ++step) {
    play_pod(run, world);
    if (run.below(12) == 0)
      world.objects[key]["spec"]["runPolicy"].set("suspend", run.below(2) == 0);
    if (run.below(8) == 0)
      for (const std::string& pod : world.names("Pod"))
        if (world.at("Pod/" + pod).get("metadata").find("deletionTimestamp"))
          world.release("Pod/" + pod);
    if (run.below(5) == 0) world.now = world.now + std::chrono::seconds(20);
    world.kill_at = world.writes + 1 + run.below(4);
    world.reconcile(key);  // World refuses to create what exists
  }
  world.kill_at = std::numeric_limits<int>::max();
  world.settle();
  if (!is_finished(world)) return;
  const auto pods = world.names("Pod");
  const Json status = world.at(key).get("status");
  world.advance(1'000);
  CHECK(world.at(key).get("status") == status);
  CHECK(world.names("Pod") == pods);
  const std::string policy(world.at(key).get("spec").get("runPolicy").get_string("cleanPodPolicy"));
  for (const std::string& pod : pods)
    if (policy == "All") CHECK(world.at("Pod/" + pod).get("metadata").find("deletionTimestamp"));
  if (policy == "All") CHECK(world.names("Service").empty());
}

}  // namespace

TEST_CASE("random lives of jobs of every kind") {
  for (const Framework* framework : frameworks())
    for (unsigned seed = 0; seed < (trainer::test::kIsSanitized ? 50 : 1000); ++seed) {
      INFO(framework->resource.kind << " seed " << seed);
      play(*framework, seed);
    }
}
