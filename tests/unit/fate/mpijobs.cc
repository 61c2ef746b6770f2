#include "tests/unit/fate/mpijobs.hh"

#include <utility>

#include "api/schema/structural_schema.hh"
#include "runtimes/admission/mpijob.hh"
#include "runtimes/mpijob/plan.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

namespace trainer::fate {
namespace {

using kube::Json;

const wire::Schema& mpijob_schema() {
  static const wire::Schema kSchema = mpijob::crd_version().make_schema();
  return kSchema;
}

Json with_defaults(Json job) {
  apply_schema_defaults(job, mpijob_schema());
  return job;
}

// Admission, and all that is created, with each gang scheduler and without.
Outcome render_mpijob(const Json& sent) {
  Outcome outcome;
  const Json job = with_defaults(sent);
  outcome.refuse(check_schema(job, mpijob_schema()));
  if (outcome.is_refused) return outcome;
  const auto typed = v1::read_job(job, mpijob::kReplicaSpecs);
  REQUIRE(typed);
  AdmissionRequest request;
  request.operation = "CREATE";
  request.object = job;
  for (const char* scheduler : {"", "volcano", "gang-scheduler"}) {
    const mpijob::MPISettings settings{.gang_scheduler = scheduler, .cluster_domain = ""};
    outcome.add(review_mpijob(request, settings).warnings);
    outcome.refuse(mpijob::validate(*typed, settings));
    for (Json& child : mpijob::all_children(*typed, settings))
      outcome.created.push_back(std::move(child));
  }
  return outcome;
}

// This is what a user sees of the job, by the controller's own actions.
Json live_mpijob(const Json& sent) {
  const Json job = with_defaults(sent);
  mpijob::test::MPIJobWorld world(job);
  Json seen = Json::array();
  const auto look = [&world, &seen] {
    for (const auto& [key, object] : world.objects) seen.push_back(key);
    seen.push_back(world.conditions());
  };
  look();
  if (world.has("Pod/m-worker-0")) {
    world.pod("m-worker-0", "Failed");
    world.pod("m-worker-1", "Running");
  }
  look();
  if (world.has("Job/m-launcher")) world.launcher_ends("Complete");
  look();
  return seen;
}

}  // namespace

Subject mpijob_subject() {
  return {"MPIJob", mpijob::test::make_mpijob(), &mpijob_schema().document, render_mpijob,
          live_mpijob};
}

}  // namespace trainer::fate
