#include "tests/unit/fate/v1jobs.hh"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "api/schema/structural_schema.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/v1/plan.hh"
#include "tests/unit/fate/trainjobs.hh"
#include "tests/unit/v1/world.hh"

namespace trainer::fate {
namespace {

using kube::Json;

const wire::Schema& schema_of(const v1::Framework& framework) {
  static std::map<std::string, wire::Schema> schemas;
  auto [at, is_new] = schemas.try_emplace(framework.resource.kind);
  if (is_new) at->second = v1::api_kind(framework).versions[0].make_schema();
  return at->second;
}

Json with_defaults(const v1::Framework& framework, Json job) {
  apply_schema_defaults(job, schema_of(framework));
  return job;
}

// The job has as many roles as a job of the kind may have at once. They restart failed pods, since
// limits of restarts mean nothing otherwise.
Json make_v1_job(const v1::Framework& framework) {
  std::string roles;
  Json job;
  for (const std::string_view role : framework.roles) {
    const std::string more = fmt::format("{} {}{}", roles, role, role == "Worker" ? "*2" : "");
    Json larger = v1::test::make_job(framework.resource.kind, more);
    for (auto& [name, spec] : larger["spec"][framework.replica_specs].as_object())
      spec.set("restartPolicy", "OnFailure");
    const Outcome outcome = render_v1(framework, larger);
    // The master that this role needs may be added later, and only a lone one can be too much.
    if (outcome.is_refused && !roles.empty() && !job.is_null()) continue;
    roles = more;
    if (!outcome.is_refused) job = std::move(larger);
  }
  REQUIRE_FALSE(job.is_null());
  return job;
}

// This is what a user sees of the job, by the controller's own actions.
class Story {
 public:
  explicit Story(const Json& job) : key_(std::string(job.get_string("kind")) + "/p"), world_(job) {
    look();
  }
  // All pods, or the last one.
  void play(std::string_view phase, bool is_one, std::optional<int> exit_code, int restarts) {
    std::vector<std::string> pods = world_.names("Pod");
    if (is_one && !pods.empty()) pods.erase(pods.begin(), pods.end() - 1);
    for (const std::string& pod : pods) world_.set_pod(pod, phase, exit_code, restarts);
    world_.settle();
    look();
  }
  Json take() { return std::move(seen_); }

 private:
  void look() {
    for (const char* kind : {"Pod", "Service"})
      for (const std::string& name : world_.names(kind)) seen_.push_back(name);
    seen_.push_back(world_.has(key_));
    if (!world_.has(key_)) return;
    seen_.push_back(world_.conditions());
    const auto plan = world_.reconcile(key_);
    seen_.push_back(plan.requeue_after ? Json(std::int64_t{plan.requeue_after->count()}) : Json());
  }

  std::string key_;
  v1::test::World world_;
  Json seen_ = Json::array();
};

Json live_v1(const v1::Framework& framework, const Json& sent) {
  const Json job = with_defaults(framework, sent);
  Json seen = Json::array();
  const auto play = [&seen, &job](const auto& script) {
    Story story(job);
    script(story);
    seen.push_back(story.take());
  };
  play([](Story& story) {
    story.play("Running", false, {}, 0);
    story.play("Succeeded", true, 0, 0);
    story.play("Succeeded", false, 0, 0);
  });
  for (const int code : {1, 137})
    play([code](Story& story) {
      story.play("Running", false, {}, 1);
      story.play("Failed", true, code, 0);
    });
  return seen;
}

}  // namespace

Outcome render_v1(const v1::Framework& framework, const Json& sent) {
  Outcome outcome;
  const Json job = with_defaults(framework, sent);
  outcome.refuse(check_schema(job, schema_of(framework)));
  AdmissionRequest request;
  request.operation = "CREATE";
  request.ns = "ns";
  request.kind = framework.resource.kind;
  request.object = job;
  const AdmissionAnswer answer = validate_v1job(request, framework);
  outcome.add(answer.warnings);
  if (!answer.is_allowed) {
    outcome.is_refused = true;
    outcome.messages.push_back(answer.message);
  }
  if (outcome.is_refused) return outcome;
  const auto typed = v1::read_job(job, framework.replica_specs);
  REQUIRE(typed);
  // A setting of gangs is for one of their schedulers.
  for (const char* scheduler : {"", "volcano", "gang-scheduler"}) {
    v1::Settings settings;
    settings.gang_scheduler = scheduler;
    for (Json& child : v1::all_children(framework, *typed, settings))
      outcome.created.push_back(std::move(child));
  }
  return outcome;
}

Subject v1_subject(const v1::Framework& framework) {
  return {framework.resource.kind, make_v1_job(framework), &schema_of(framework).document,
          [&framework](const Json& sent) { return render_v1(framework, sent); },
          [&framework](const Json& sent) { return live_v1(framework, sent); }};
}

}  // namespace trainer::fate
