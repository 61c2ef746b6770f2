// A plan is run: its writes and events are made, and it may be tried again. There is one row for
// each result of a write.
#include "kube/client/task_group.hh"
#include "kube/manager/plan_runner.hh"
#include "kube/manager/stored_object.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/error_name.hh"
#include "kube/tests/recorded_metrics.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"

using kube::Debounce;
using kube::ErrorCode;
using kube::Json;
using std::chrono::milliseconds;

namespace {

using Lines = std::vector<std::string>;

// A Gadget has a Widget as its child, and a Widget has Jobs and a Service.
const kube::Resource kGadgets{"example.com", "v1", "gadgets", "Gadget", true};
const kube::Resource kWidgets{"example.com", "v1", "widgets", "Widget", true};
const kube::Resource kPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};
const kube::Resource kWorkloads{"scheduling.k8s.io", "v1beta1", "workloads", "Workload", true};
const kube::Collection kAllWidgets{kWidgets, ""};
const kube::Collection kJobsOfWidgets{kube::kJobs, "example.com/widget"};
const kube::Collection kAllServices{kube::kServices, ""};
const std::string kEventsPath = "/api/v1/namespaces/n/events";
const std::string kJobsPath = "/apis/batch/v1/namespaces/n/jobs";
const std::string kServicesPath = "/api/v1/namespaces/n/services";
const std::string kStatusPath = "/apis/example.com/v1/namespaces/n/widgets/x/status";

std::string refusal(int code, const std::string& reason, const std::string& message) {
  return kube::print_json(
      Json::object({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}));
}

// An object as the API server stores it, controlled by the Widget of this uid, if any.
std::string stored(const kube::Resource& resource, const std::string& name,
                   const std::string& controller_uid = "") {
  Json object = Json::object({{"apiVersion", resource.api_version()}, {"kind", resource.kind}});
  object.set(
      "metadata",
      Json::object(
          {{"name", name}, {"namespace", "n"}, {"uid", "u-" + name}, {"resourceVersion", "9"}}));
  object["metadata"].set("labels", Json::object({{"example.com/widget", "x"}}));
  if (!controller_uid.empty()) {
    object["metadata"].set("ownerReferences",
                           Json::array({Json::object({{"apiVersion", "example.com/v1"},
                                                      {"kind", "Widget"},
                                                      {"name", "some"},
                                                      {"uid", controller_uid},
                                                      {"controller", true}})}));
  }
  return kube::print_json(object);
}

kube::Action action(kube::Action::Verb verb, const kube::Resource& resource,
                    const std::string& name) {
  kube::Action made;
  made.verb = verb;
  made.resource = resource;
  made.key = {"n", name};
  made.body = *kube::parse_json(stored(resource, name));
  made.body["metadata"].erase("uid");
  made.body["metadata"].erase("resourceVersion");
  made.owner_uid = "u1";
  return made;
}

// The plans of a Widget ask for such actions.
kube::Action create_job(const std::string& name) {
  kube::Action made = action(kube::Action::Verb::kCreate, kube::kJobs, name);
  made.failure_reason = "JobCreationFailed";
  made.description = "job \"" + name + "\" creation failed with error";
  return made;
}

kube::Action create_service() {
  kube::Action made = action(kube::Action::Verb::kCreate, kube::kServices, "x");
  made.failure_reason = "ServiceCreationFailed";
  made.unowned = kube::Action::Unowned::kAccept;
  return made;
}

// Widgets are reconciled soon; Gadgets have a default failure, and wait longer.
kube::ControllerRegistration registration_of(const kube::Resource& resource) {
  kube::ControllerRegistration made;
  made.watches.push_back(
      kube::Watch::only_read<kube::StoredObject>({resource, ""}, kube::transform_owner));
  if (resource == kWidgets) {
    made.debounce = {milliseconds(20), milliseconds(20), milliseconds(150), milliseconds(1'000)};
  } else {
    made.debounce = {milliseconds(150), milliseconds(300), milliseconds(300), milliseconds(3'000)};
    made.default_failure = {"ResourcesCreationFailed", "Gadget resources reconciliation failed: "};
  }
  return made;
}

// A controller with everything that its plans need, but without watches and workers.
struct Runner {
  kube::ControllerRegistration registration;
  kube::StatusWriter statuses;
  kube::PlanRunner plan_runner;

  Runner(const kube::Resource& resource, kube::ApiClient& client, kube::CacheSet& caches,
         kube::EventRouter& router, kube::Semaphore& writes, kube::Executor& executor,
         kube::EventRecorder& events, kube::Clock& clock, kube::ManagerMetrics& metrics,
         const kube::Log& log)
      : registration(registration_of(resource)),
        statuses(client, caches, router, writes, log),
        plan_runner(registration, executor, statuses, events, clock, metrics, log) {}
};

const kube::PlannedEvent kFailed{.type = "Warning",
                                 .reason = "FailedJobs",
                                 .message = "it has failed",
                                 .end = kube::PlannedEvent::End::kFailed};

struct Fixture : kube::test::ScriptedPeer {
  Lines enqueued;  // Widgets, each with how soon
  std::function<kube::ScriptedReply()> on_status = [] { return kube::ScriptedReply(200, "{}"); };
  kube::CacheSet caches;
  kube::EventRouter router;
  kube::Semaphore writes{4, kube::Pacing::kStatusShare};
  kube::Executor executor{io, client, caches, writes, "manager", log};
  kube::EventRecorder events{client, "manager"};
  kube::test::RecordedMetrics metrics;
  Runner gadgets{kGadgets, client, caches, router, writes, executor, events, clock, metrics, log};
  Runner widgets{kWidgets, client, caches, router, writes, executor, events, clock, metrics, log};

  explicit Fixture(kube::ApiClient::Options options = {}) : ScriptedPeer(std::move(options)) {
    const auto make_cache = registration_of(kWidgets).watches.front().make_cache;
    for (const auto& collection : {kAllWidgets, kJobsOfWidgets, kAllServices})
      caches.add(collection, make_cache, true);
    widgets.statuses.set_controller(
        router.add_controller([this](const kube::ObjectKey& key, Debounce debounce) {
          enqueued.push_back(key.name + (debounce == Debounce::kNone ? " now" : " later"));
        }));
    router.set_owner(0, "u1", {"n", "x"});
    // The manager has this handler of a primary collection, too.
    cache<kube::StoredObject>(kAllWidgets)
        .add_event_handler([this](const auto&, const auto& after) {
          if (widgets.statuses.is_own_write(after->object_key, after->resource_version)) return;
          if (const auto debounce = router.debounce_of_change())
            router.enqueue(0, after->object_key, *debounce);
        });
    api.on("POST", kEventsPath).always().answer(201, "{}");
    api.on("PATCH", kStatusPath).always().reply([this](const kube::ReceivedRequest&) {
      return on_status();
    });
  }
  template <class T>
  kube::ObjectCache<T>& cache(const kube::Collection& collection) {
    return dynamic_cast<kube::ObjectCache<T>&>(caches.add(collection, nullptr, true));
  }
  kube::PlanRunner& runner_of(const kube::Resource& resource) {
    return resource == kWidgets ? widgets.plan_runner : gadgets.plan_runner;
  }
  // The script for the first request of an action.
  kube::ScriptedServer::Script& on(const kube::Action& desired) {
    const bool is_post = desired.verb == kube::Action::Verb::kCreate;
    const char* const method = is_post                                       ? "POST"
                               : desired.verb == kube::Action::Verb::kDelete ? "DELETE"
                                                                             : "PATCH";
    kube::ObjectKey key = desired.key;
    if (is_post) key.name.clear();
    return api.on(method, kube::api_path(desired.resource, key));
  }
  kube::Task<kube::Result<kube::Requeue>> begin(const kube::Resource& of, kube::Plan plan) {
    kube::ObjectRef object{{"n", "x"}, "u1", "5"};
    return runner_of(of).run(std::move(object), std::move(plan));
  }
  kube::Result<kube::Requeue> run(const kube::Resource& of, kube::Plan plan) {
    return kube::run_task(io, begin(of, std::move(plan)));
  }
  // "Warning REASON: MESSAGE" of each event that was sent.
  Lines sent_events() {
    kube::TaskGroup sender(io.get_executor(), nullptr);
    sender.spawn("events", events.run());
    kube::run_task(io, events.drain(milliseconds(1'000)));
    sender.cancel();
    kube::run_task(io, sender.join());
    Lines found;
    for (const auto& request : api.log()) {
      if (request.path != kEventsPath) continue;
      const Json event = *kube::parse_json(request.body);
      found.push_back(std::string(event.get_string("type")) + " " +
                      std::string(event.get_string("reason")) + ": " +
                      std::string(event.get_string("message")));
    }
    return found;
  }
  // The requests except events, "METHOD /path".
  Lines asked() const {
    Lines found;
    for (const auto& request : api.log()) {
      if (request.path != kEventsPath) found.push_back(request.method + " " + request.path);
    }
    return found;
  }
};

kube::Plan plan_of(std::vector<kube::Action> actions) {
  kube::Plan plan;
  plan.actions = std::move(actions);
  return plan;
}

// For task groups, whose tasks have no result.
kube::Task<void> carry_on(kube::Task<kube::Result<kube::Requeue>> task) {
  co_await std::move(task);
}

// There are more writes than may be in flight, and none of them is answered.
void crowd(Fixture& peer, kube::TaskGroup& writes) {
  peer.api.on("POST", kJobsPath).hold().always();
  for (int i = 0; i < 5; ++i) {
    kube::Plan plan = plan_of({create_job("x-w-" + std::to_string(i))});
    writes.spawn("write", carry_on(peer.begin(kWidgets, std::move(plan))));
  }
  REQUIRE(kube::run_until(peer.io, [&peer] { return peer.executor.is_under_load(); }));
}

kube::Plan with_status(kube::Plan plan, bool is_minor) {
  plan.status_patch = Json::object({{"status", Json::object({{"restarts", 1}})}});
  if (is_minor) plan.status_change = kube::Plan::StatusChange::kCounters;
  return plan;
}

}  // namespace

TEST_CASE("events of actions wait for no status, and are lost with a refused action only") {
  const bool is_refused = GENERATE(false, true);
  Fixture peer;
  const auto widget = action(kube::Action::Verb::kApply, kWidgets, "x");
  peer.on(widget).answer(is_refused ? 403 : 200, is_refused ? refusal(403, "Forbidden", "no")
                                                            : stored(kWidgets, "x", "u1"));
  kube::Plan plan = plan_of({widget});
  kube::PlannedEvent created;
  created.reason = "Created";
  created.message = "created Widget x";
  created.time = kube::PlannedEvent::Time::kAfterActions;
  plan.events.push_back(std::move(created));
  CHECK(peer.run(kGadgets, std::move(plan)).has_value() != is_refused);
  const Lines sent = peer.sent_events();
  REQUIRE(sent.size() == 1);
  CHECK((sent[0] == "Normal Created: created Widget x") != is_refused);
}

TEST_CASE("a refusal is kept until the write succeeds, and then another plan follows at once") {
  Fixture peer;
  const auto job = create_job("x-w-0");
  const auto& runner = peer.widgets.plan_runner;
  CHECK_FALSE(runner.refusal_of("u1"));
  peer.on(job).answer(403, refusal(403, "Forbidden", "exceeded quota"));
  CHECK_FALSE(peer.run(kWidgets, plan_of({job})));
  REQUIRE(runner.refusal_of("u1"));
  CHECK(runner.refusal_of("u1")->resource == kube::kJobs);
  CHECK_THAT(runner.refusal_of("u1")->message, Catch::Contains("exceeded quota"));
  CHECK_FALSE(runner.refusal_of("another"));
  peer.on(job).answer(201, stored(kube::kJobs, "x-w-0", "u1"));
  const auto accepted = peer.run(kWidgets, plan_of({job}));
  REQUIRE(accepted);
  CHECK(*accepted == milliseconds(0));
  CHECK_FALSE(runner.refusal_of("u1"));
  const auto idle = peer.run(kWidgets, plan_of({}));
  REQUIRE(idle);
  CHECK_FALSE(*idle);
}

TEST_CASE("an error of the API server is kept like a refusal once it has lasted for five seconds") {
  Fixture peer;
  const auto job = create_job("x-w-0");
  const auto& runner = peer.widgets.plan_runner;
  const auto fails = [&] {
    peer.on(job).answer(500, refusal(500, "InternalError", "failed calling webhook")).always();
    const auto result = peer.run(kWidgets, plan_of({job}));
    REQUIRE_FALSE(result);
    return result.error().retry_within;
  };
  CHECK(fails() == std::chrono::seconds(5));  // however long the backoff is
  CHECK_FALSE(runner.refusal_of("u1"));
  peer.clock.advance(std::chrono::seconds(5));
  CHECK_FALSE(fails());
  CHECK(runner.refusal_of("u1"));
  peer.widgets.plan_runner.forget("u1");
  CHECK_FALSE(runner.refusal_of("u1"));
}

TEST_CASE("what is due in time does not wait for the backoff of a child that is refused") {
  for (const milliseconds left : {milliseconds(90'000), milliseconds(3)}) {
    Fixture peer;
    const auto job = create_job("x-w-0");
    peer.on(job).answer(403, refusal(403, "Forbidden", "exceeded quota"));
    kube::Plan plan = plan_of({job});
    plan.requeue_within(milliseconds(1));  // not due: the backoff decides
    plan.due_within(left);
    const auto result = peer.run(kWidgets, std::move(plan));
    REQUIRE(!result);
    CHECK(result.error().retry_within == std::max(left, milliseconds(1'000)));
    CHECK_FALSE(result.error().retry_after);
  }
}

TEST_CASE("a status that is stored is known, whatever becomes of the actions") {
  for (const bool is_status_first : {false, true}) {
    for (const bool is_stored : {false, true}) {
      INFO(is_status_first << " " << is_stored);
      Fixture peer;
      const auto job = create_job("x-w-0");
      peer.on(job).answer(403, refusal(403, "Forbidden", "exceeded quota"));
      if (!is_stored) peer.on_status = [] { return kube::ScriptedReply(409, "{}"); };
      kube::Plan plan = with_status(plan_of({job}), false);
      if (is_status_first) plan.status_time = kube::Plan::StatusTime::kBeforeActions;
      int calls = 0;
      const auto result = kube::run_task(
          peer.io, peer.widgets.plan_runner.run({{"n", "x"}, "u1", "5"}, std::move(plan),
                                                [&calls] { ++calls; }));
      CHECK_FALSE(result);
      CHECK(calls == (is_stored ? 1 : 0));
    }
  }
}

TEST_CASE("each result of a write: its event, and whether it is tried again") {
  struct Row {
    const char* about;
    kube::Resource of;
    kube::Action desired;
    int status;
    std::string answer;
    Lines events;
    std::optional<ErrorCode> error;
  };
  const kube::Action patch_of_job = action(kube::Action::Verb::kMergePatch, kube::kJobs, "x-w-0");
  const kube::Action widget = action(kube::Action::Verb::kApply, kWidgets, "x");
  const kube::Action pod_group = action(kube::Action::Verb::kApply, kPodGroups, "x");
  const kube::Action removal = action(kube::Action::Verb::kDelete, kube::kJobs, "x-w-0");
  const std::string unknown_kind =
      "Warning ResourcesCreationFailed: Gadget resources reconciliation failed: apply "
      "PodGroup n/x: the cluster does not serve PodGroup of scheduling.x-k8s.io/v1alpha1: install "
      "its CustomResourceDefinition, or take out of the runtime what asks for it";
  const Row rows[] = {
      {"a Job that is made",
       kWidgets,
       create_job("x-w-0"),
       201,
       stored(kube::kJobs, "x-w-0", "u1"),
       {},
       std::nullopt},
      {"a Job that is refused",
       kWidgets,
       create_job("x-w-0"),
       403,
       refusal(403, "Forbidden", "exceeded quota"),
       {"Warning JobCreationFailed: job \"x-w-0\" creation failed with error: exceeded quota"},
       ErrorCode::kForbidden},
      {"a Service that is refused",
       kWidgets,
       create_service(),
       422,
       refusal(422, "Invalid", "no such port"),
       {"Warning ServiceCreationFailed: create Service n/x: no such port"},
       ErrorCode::kInvalid},
      {"a patch of a Widget's Job that is refused",
       kWidgets,
       patch_of_job,
       422,
       refusal(422, "Invalid", "field is immutable"),
       {},
       ErrorCode::kInvalid},
      {"a Gadget's child that is refused",
       kGadgets,
       widget,
       403,
       refusal(403, "Forbidden", "denied by a webhook"),
       {"Warning ResourcesCreationFailed: Gadget resources reconciliation failed: apply "
        "Widget n/x: denied by a webhook"},
       ErrorCode::kForbidden},
      {"a child that another client has changed",
       kGadgets,
       widget,
       409,
       refusal(409, "Conflict", "the object has been modified"),
       {},
       ErrorCode::kConflict},
      {"a namespace that ends, to a Widget",
       kWidgets,
       create_job("x-w-0"),
       403,
       refusal(403, "Forbidden",
               "jobs.batch \"x-w-0\" is forbidden: unable to create new content in namespace n "
               "because it is being terminated"),
       {},
       std::nullopt},
      {"a namespace that ends, to a Gadget",
       kGadgets,
       widget,
       403,
       refusal(403, "Forbidden",
               "widgets.example.com \"x\" is forbidden: unable to create new content in "
               "namespace n because it is being terminated"),
       {},
       std::nullopt},
      {"a kind that the cluster does not know",
       kGadgets,
       pod_group,
       404,
       "404 page not found\n",
       {unknown_kind},
       ErrorCode::kNotFound},
      {"the same from a cluster that once knew it",
       kGadgets,
       pod_group,
       404,
       refusal(404, "NotFound", "the server could not find the requested resource"),
       {unknown_kind},
       ErrorCode::kNotFound},
      {"a kind of Kubernetes itself that is switched off",
       kGadgets,
       action(kube::Action::Verb::kApply, kWorkloads, "x"),
       404,
       "404 page not found\n",
       {"Warning ResourcesCreationFailed: Gadget resources reconciliation failed: apply Workload "
        "n/x: the cluster does not serve Workload of scheduling.k8s.io/v1beta1: switch it on in "
        "the API server (--runtime-config, --feature-gates), or take out of the runtime what asks "
        "for it"},
       ErrorCode::kNotFound},
      {"another 404",
       kGadgets,
       pod_group,
       404,
       refusal(404, "NotFound", "namespaces \"n\" not found"),
       {"Warning ResourcesCreationFailed: Gadget resources reconciliation failed: apply "
        "PodGroup n/x: namespaces \"n\" not found"},
       ErrorCode::kNotFound},
      {"what is to be deleted and is gone",
       kWidgets,
       removal,
       404,
       refusal(404, "NotFound", "jobs \"x-w-0\" not found"),
       {},
       std::nullopt},
      {"what is to be deleted and has a successor",
       kWidgets,
       removal,
       409,
       refusal(409, "Conflict", "the UID in the precondition is another"),
       {},
       std::nullopt},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    Fixture world;
    world.on(row.desired).answer(row.status, row.answer);
    const auto done = world.run(row.of, plan_of({row.desired}));
    CHECK(done.has_value() == !row.error);
    if (!done && row.error)
      CHECK(kube::test::name_of(done.error().code) == kube::test::name_of(*row.error));
    if (done) CHECK_FALSE(*done);  // nothing is waited for
    CHECK(world.asked().size() == 1);
    CHECK(world.sent_events() == row.events);
  }
}

TEST_CASE(
    "a name that is taken: an owned object counts as done, and so does a Service without a "
    "controller") {
  struct Row {
    const char* about;
    kube::Action desired;
    std::string controller_uid;
    Lines events;
  };
  const std::string left_alone = "; it is left alone: delete or rename it, or rename the job";
  const Row rows[] = {
      {"an owned Service", create_service(), "u1", {}},
      {"a Service without a controller", create_service(), "", {}},
      {"another's Service",
       create_service(),
       "u9",
       {"Warning ServiceCreationFailed: create Service n/x: an object of this name exists "
        "and is controlled by Widget some (uid u9)" +
        left_alone}},
      {"an owned Job", create_job("x"), "u1", {}},
      {"a Job without a controller",
       create_job("x"),
       "",
       {"Warning JobCreationFailed: job \"x\" creation failed with error: an object of this name "
        "exists and is controlled by no controller" +
        left_alone}},
      {"another's Job",
       create_job("x"),
       "u9",
       {"Warning JobCreationFailed: job \"x\" creation failed with error: an object of this name "
        "exists and is controlled by Widget some (uid u9)" +
        left_alone}},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    Fixture world;
    world.on(row.desired).answer(409, refusal(409, "AlreadyExists", "it exists"));
    const std::string path = kube::api_path(row.desired.resource, row.desired.key);
    world.api.on("GET", path).answer(200, stored(row.desired.resource, "x", row.controller_uid));
    const auto done = world.run(kWidgets, plan_of({row.desired}));
    CHECK(done.has_value() == row.events.empty());
    if (!done) CHECK(done.error().code == ErrorCode::kAlreadyExists);
    CHECK(world.asked().back() == "GET " + path);
    CHECK(world.sent_events() == row.events);
    if (row.desired.resource == kube::kServices) {
      // Otherwise the next reconcile would create it again.
      CHECK((world.cache<kube::StoredObject>(kAllServices).find({"n", "x"}) != nullptr) ==
            done.has_value());
    }
  }
}

TEST_CASE_METHOD(Fixture, "failures of one cause are one event, a line each, in the plan's order") {
  api.on("POST", kJobsPath).always().reply([](const kube::ReceivedRequest& request) {
    const Json job = *kube::parse_json(request.body);
    const std::string name(job.find("metadata")->get_string("name"));
    return name == "x-w-1" ? kube::ScriptedReply(201, stored(kube::kJobs, name, "u1"))
                           : kube::ScriptedReply(403, refusal(403, "Forbidden", "no " + name));
  });
  api.on("POST", kServicesPath).answer(403, refusal(403, "Forbidden", "no service"));
  kube::Action later = create_job("x-later-0");
  later.stage = 1;
  const auto done = run(kWidgets, plan_of({later, create_job("x-w-0"), create_job("x-w-1"),
                                           create_job("x-w-2"), create_service()}));
  REQUIRE_FALSE(done);
  const std::string text =
      "job \"x-w-0\" creation failed with error: no x-w-0\n"
      "job \"x-w-2\" creation failed with error: no x-w-2";
  CHECK(done.error().message == text);
  CHECK(sent_events() == Lines{"Warning JobCreationFailed: " + text});
  // The created Job is cached, and a stage waits for the one before it.
  CHECK(cache<kube::StoredObject>(kJobsOfWidgets).find({"n", "x-w-1"}));
  CHECK(asked().size() == 4);
}

TEST_CASE_METHOD(Fixture, "a cancelled write records no event") {
  // There are as many writes as may be in flight, and one that waits.
  api.on("POST", kJobsPath).hold().always();
  kube::TaskGroup busy(io.get_executor(), nullptr);
  busy.spawn("busy",
             carry_on(begin(kWidgets, plan_of({create_job("x-w-0"), create_job("x-w-1"),
                                               create_job("x-w-2"), create_job("x-w-3")}))));
  REQUIRE(kube::run_until(io, [this] { return asked().size() == 4; }));
  kube::TaskGroup waiting(io.get_executor(), nullptr);
  waiting.spawn("waiting", carry_on(begin(kWidgets, plan_of({create_job("x-w-4")}))));
  REQUIRE(kube::run_until(io, [this] { return executor.is_under_load(); }));
  for (kube::TaskGroup* const group : {&waiting, &busy}) {
    group->cancel();
    kube::run_task(io, group->join());
    CHECK(sent_events().empty());
  }
  CHECK(asked().size() == 4);
}

TEST_CASE_METHOD(Fixture, "how soon to reconcile an object whose children have changed") {
  CHECK(runner_of(kWidgets).delay_of(Debounce::kNone, "u1") == milliseconds(0));
  CHECK(runner_of(kWidgets).delay_of(Debounce::kShort, "u1") == milliseconds(20));
  CHECK(runner_of(kGadgets).delay_of(Debounce::kShort, "u1") == milliseconds(150));

  SECTION("the counters that follow have waited meanwhile") {
    CHECK(runner_of(kGadgets).delay_of(Debounce::kCounters, "u1") == milliseconds(300));
    clock.advance(milliseconds(300));
    CHECK(run(kGadgets, with_status({}, true)).value() == std::nullopt);
    CHECK(asked().size() == 1);
  }
  SECTION("a Widget is reconciled sooner: the next Jobs may start") {
    CHECK(runner_of(kWidgets).delay_of(Debounce::kCounters, "u1") == milliseconds(20));
    clock.advance(milliseconds(20));
    CHECK(run(kWidgets, with_status({}, true)).value() == milliseconds(130));
  }
  SECTION("a reconcile that found no difference") {
    runner_of(kGadgets).delay_of(Debounce::kCounters, "u1");
    clock.advance(milliseconds(300));
    REQUIRE(run(kGadgets, kube::Plan()));
    CHECK(run(kGadgets, with_status({}, true)).value() == milliseconds(300));
  }
  SECTION("while writes queue a reconcile for counters waits as long as they do") {
    kube::TaskGroup writes(io.get_executor(), nullptr);
    crowd(*this, writes);
    CHECK(runner_of(kWidgets).delay_of(Debounce::kNone, "u1") == milliseconds(0));
    CHECK(runner_of(kGadgets).delay_of(Debounce::kShort, "u1") == milliseconds(150));
    CHECK(runner_of(kWidgets).delay_of(Debounce::kCounters, "u1") == milliseconds(1'000));
    CHECK(runner_of(kGadgets).delay_of(Debounce::kCounters, "u2") == milliseconds(3'000));
    writes.cancel();
    kube::run_task(io, writes.join());
  }
}

TEST_CASE_METHOD(Fixture, "counters wait longer while writes queue, and for a second after") {
  kube::TaskGroup writes(io.get_executor(), nullptr);
  crowd(*this, writes);
  CHECK(run(kWidgets, with_status({}, true)).value() == milliseconds(1'000));
  runner_of(kWidgets).forget("u1");
  CHECK(run(kGadgets, with_status({}, true)).value() == milliseconds(3'000));

  writes.cancel();
  kube::run_task(io, writes.join());
  REQUIRE(Fixture::writes.waiting() == 0);
  clock.advance(milliseconds(999));
  CHECK(run(kGadgets, with_status({}, true)).value() == milliseconds(2'001));
  clock.advance(milliseconds(1));
  CHECK(run(kGadgets, with_status({}, true)).value() == std::nullopt);
}

TEST_CASE("changes during a status write are enqueued, whatever its result") {
  struct Row {
    int status;
    std::string answer;
    const char* enqueued;
  };
  const std::string widget_path = "/apis/example.com/v1/namespaces/n/widgets/x";
  const std::string changed = kube::print_json(
      kube::parse_json(stored(kWidgets, "x"))->set("spec", Json::object({{"suspend", true}})));
  std::string newer = changed;
  newer.replace(newer.find("\"9\""), 3, "\"10\"");
  const Row rows[] = {
      {200, newer, "x later"},  // it was the status itself
      {404, refusal(404, "NotFound", "widgets \"x\" not found"), "x now"},
      {409, refusal(409, "Conflict", "the object has been modified"), "x now"},
      {422, refusal(422, "Invalid", "status.restarts"), "x now"},
  };
  for (const Row& row : rows) {
    INFO(row.status);
    Fixture world;
    REQUIRE(world.cache<kube::StoredObject>(kAllWidgets).upsert(stored(kWidgets, "x")));
    world.enqueued.clear();
    bool was_quiet = false;
    world.api.on("GET", widget_path).answer(200, newer);
    world.on_status = [&] {
      REQUIRE(world.cache<kube::StoredObject>(kAllWidgets).upsert(newer));
      was_quiet = world.enqueued.empty();
      return kube::ScriptedReply(row.status, row.answer);
    };
    const auto done = world.run(kWidgets, with_status({}, false));
    CHECK(was_quiet);
    CHECK(world.enqueued == Lines{row.enqueued});
    CHECK(done.has_value() == (row.status == 200 || row.status == 404));
  }
}

TEST_CASE("after a status write without an answer the object is read before anything is written") {
  struct Row {
    int status;           // the answer of the write; 0: the connection is cut
    int read;             // the answer of the first read after it
    const char* version;  // the version that it shows
    bool is_run;
  };
  const std::string path = "/apis/example.com/v1/namespaces/n/widgets/x";
  const Row rows[] = {
      {0, 200, "5", true},     // it was not written
      {0, 200, "9", false},    // it was
      {500, 200, "9", false},  // a proxy's answer says nothing
      {504, 404, "", false},  {0, 503, "", false},
      {422, 0, "", true},  // refused, so nothing is read
      {409, 0, "", true},
  };
  for (const Row& row : rows) {
    INFO(row.status << " " << row.read << " " << row.version);
    kube::ApiClient::Options options;
    options.max_attempts = 1;
    Fixture world(std::move(options));
    world.on_status = [&row] {
      kube::ScriptedReply reply(row.status, refusal(row.status, "Some", "reason"));
      if (row.status == 0) reply.is_reset = true;
      return reply;
    };
    std::string found = stored(kWidgets, "x");
    found.replace(found.find("\"9\""), 3, std::string("\"") + row.version + "\"");
    if (row.status == 409) world.api.on("GET", path).answer(200, found);
    REQUIRE_FALSE(world.run(kWidgets, with_status({}, false)));
    if (row.read != 0)
      world.api.on("GET", path)
          .answer(row.read, row.read == 200 ? found : refusal(row.read, "", ""));
    const std::size_t before = world.api.log().size();
    kube::Plan plan;
    plan.actions.push_back(create_job("j"));
    world.api.on("POST", kJobsPath).always().answer(201, stored(kube::kJobs, "j", "u1"));
    const auto done = world.run(kWidgets, std::move(plan));
    CHECK(done.has_value() == row.is_run);
    if (row.read == 200 && !row.is_run) CHECK(done.error().code == ErrorCode::kConflict);
    CHECK(world.api.log().size() - before == (row.read != 0 ? 1u : 0u) + (row.is_run ? 1u : 0u));
    if (row.read != 200 || row.is_run) continue;
    // The object that was read is known now, and is not read again.
    CHECK(world.cache<kube::StoredObject>(kAllWidgets).find({"n", "x"})->resource_version == "9");
    plan = kube::Plan();
    plan.actions.push_back(create_job("j"));
    CHECK(world.run(kWidgets, std::move(plan)));
  }
}

TEST_CASE("a status that is refused is an event, and counted") {
  struct Row {
    int status;
    const char* reason;
    bool is_reported;
  };
  const Row rows[] = {
      {400, "BadRequest", true}, {401, "Unauthorized", true}, {403, "Forbidden", true},
      {404, "NotFound", false},  {409, "Conflict", false},    {422, "Invalid", true},
  };
  for (const Row& row : rows) {
    INFO(row.status);
    Fixture world;

    world.on_status = [&row] {
      return kube::ScriptedReply(row.status, refusal(row.status, row.reason, "no such reason"));
    };
    kube::Plan plan = with_status({}, false);
    plan.events.push_back(kFailed);
    const auto done = world.run(kWidgets, std::move(plan));
    CHECK(done.has_value() == (row.status == 404));
    if (row.status == 404) continue;
    const std::string counted = "status refused Widget " + std::to_string(row.status);
    CHECK(world.metrics.lines == (row.is_reported ? Lines{counted} : Lines{}));
    CHECK(world.sent_events() ==
          (row.is_reported
               ? Lines{"Warning StatusUpdateFailed: status of Widget n/x: no such reason"}
               : Lines{}));
  }
}

TEST_CASE("an end is counted as what it is, whatever type its event has") {
  using End = kube::PlannedEvent::End;
  struct Row {
    const char* type;
    End end;
    const char* result;
  };
  for (const Row& row :
       {Row{"Normal", End::kSucceeded, "succeeded"}, Row{"Warning", End::kSucceeded, "succeeded"},
        Row{"Warning", End::kFailed, "failed"}, Row{"Normal", End::kFailed, "failed"}}) {
    Fixture world;
    kube::Plan plan = with_status({}, false);
    plan.events.push_back({.type = row.type, .reason = "Ended", .message = "m", .end = row.end});
    REQUIRE(world.run(kWidgets, std::move(plan)));
    CHECK(world.metrics.lines == Lines{std::string("finished Widget ") + row.result});
  }
}

TEST_CASE_METHOD(Fixture, "the end of a part is reported, and not counted") {
  kube::ObjectRef part{{"n", "x"}, "u1", "5"};
  part.is_end_counted = false;
  kube::Plan plan = with_status({}, false);
  plan.events.push_back(
      {.reason = "Ended", .message = "m", .end = kube::PlannedEvent::End::kSucceeded});
  REQUIRE(kube::run_task(io, widgets.plan_runner.run(std::move(part), std::move(plan))));
  CHECK(sent_events() == Lines{"Normal Ended: m"});
  CHECK(metrics.lines.empty());
}

TEST_CASE_METHOD(Fixture, "a child that is refused does not hide the counters of the others") {
  const kube::Action desired = create_job("x-w-0");
  const Lines refused{
      "Warning JobCreationFailed: job \"x-w-0\" creation failed with error: exceeded quota"};
  on(desired).answer(403, refusal(403, "Forbidden", "exceeded quota")).always();

  SECTION("a status that differs in more than counters is written at once") {
    const auto done = run(kWidgets, with_status(plan_of({desired}), false));
    REQUIRE_FALSE(done);
    CHECK_FALSE(done.error().retry_after);
    CHECK(asked() == Lines{"POST " + kJobsPath, "PATCH " + kStatusPath});
    CHECK(sent_events() == refused);
  }
  SECTION("counters wait for related ones, and no longer") {
    const auto done = run(kWidgets, with_status(plan_of({desired}), true));
    REQUIRE_FALSE(done);
    CHECK(done.error().retry_after == milliseconds(150));
    CHECK(asked() == Lines{"POST " + kJobsPath});

    clock.advance(milliseconds(150));
    const auto again = run(kWidgets, with_status(plan_of({desired}), true));
    REQUIRE_FALSE(again);
    CHECK_FALSE(again.error().retry_after);
    CHECK(asked().back() == "PATCH " + kStatusPath);
  }
  SECTION("a Retry-After of the API server takes precedence") {
    const kube::Action child = action(kube::Action::Verb::kApply, kWidgets, "x");
    on(child).answer(403, refusal(403, "Forbidden", "later")).header("Retry-After", "7");
    const auto done = run(kGadgets, with_status(plan_of({child}), true));
    REQUIRE_FALSE(done);
    CHECK(done.error().retry_after == milliseconds(7'000));
  }
}

TEST_CASE_METHOD(Fixture, "counters that wait requeue the object") {
  CHECK(run(kWidgets, with_status({}, true)).value() == milliseconds(150));
  CHECK(asked().empty());
  kube::Plan sooner = with_status({}, true);
  sooner.requeue_after = milliseconds(20);
  CHECK(run(kWidgets, std::move(sooner)).value() == milliseconds(20));
}

TEST_CASE_METHOD(Fixture, "a plan that writes nothing and asks again at once waits ever longer") {
  kube::Plan again;
  again.requeue_after = milliseconds(1);
  for (const int expected : {20, 40, 80, 160, 320, 640, 1'280, 2'560, 5'120, 10'000, 10'000})
    CHECK(run(kWidgets, again).value() == milliseconds(expected));
  SECTION("until it asks for a later time") {
    kube::Plan later;
    later.requeue_after = milliseconds(21);
    CHECK(run(kWidgets, std::move(later)).value() == milliseconds(21));
    CHECK(run(kWidgets, again).value() == milliseconds(20));
  }
  SECTION("until it writes: a child") {
    const kube::Action desired = create_job("x-w-0");
    on(desired).answer(201, stored(kube::kJobs, "x-w-0", "u1"));
    kube::Plan plan = plan_of({desired});
    plan.requeue_after = milliseconds(0);
    CHECK(run(kWidgets, std::move(plan)).value() == milliseconds(0));
    CHECK(run(kWidgets, again).value() == milliseconds(20));
  }
  SECTION("what exists already, and what is gone already, are no writes") {
    const kube::Action desired = create_job("x-w-0");
    on(desired).answer(409, refusal(409, "AlreadyExists", "it exists"));
    api.on("GET", kJobsPath + "/x-w-0").answer(200, stored(kube::kJobs, "x-w-0", "u1"));
    kube::Action removal = action(kube::Action::Verb::kDelete, kube::kJobs, "x-w-1");
    on(removal).answer(404, refusal(404, "NotFound", "gone"));
    kube::Plan plan = plan_of({desired, removal});
    plan.requeue_after = milliseconds(0);
    CHECK(run(kWidgets, std::move(plan)).value() == milliseconds(10'000));
  }
  SECTION("until it writes: its status") {
    CHECK(run(kWidgets, with_status(again, false)).value() == milliseconds(1));
    CHECK(run(kWidgets, again).value() == milliseconds(20));
  }
  SECTION("counters that are held back are no write, and wait no longer") {
    CHECK(run(kWidgets, with_status(again, true)).value() == milliseconds(150));
    CHECK(run(kWidgets, again).value() == milliseconds(10'000));
  }
  SECTION("each object by itself, and until it is deleted") {
    runner_of(kWidgets).forget("u1");
    CHECK(run(kWidgets, again).value() == milliseconds(20));
  }
}

TEST_CASE_METHOD(Fixture, "of an object that was deleted meanwhile no counters wait") {
  router.remove_owner(0, "u1");
  CHECK(run(kWidgets, with_status({}, true)).value() == std::nullopt);
  CHECK(asked().empty());
}

TEST_CASE(
    "while the watch of its kind is interrupted, nothing is created for an object that is gone") {
  struct Row {
    const char* about;
    int status;
    std::string answer;
    bool is_created;
  };
  Json deleting = *kube::parse_json(stored(kWidgets, "x"));
  deleting["metadata"].set("uid", "u1").set("deletionTimestamp", "2026-01-01T00:00:00Z");
  Json live = deleting;
  live["metadata"].erase("deletionTimestamp");
  const Row rows[] = {{"there", 200, kube::print_json(live), true},
                      {"being deleted", 200, kube::print_json(deleting), false},
                      {"another one", 200, stored(kWidgets, "x"), false},
                      {"gone", 404, refusal(404, "NotFound", "no such Widget"), false},
                      {"not known", 403, refusal(403, "Forbidden", "no right"), true}};
  for (const Row& row : rows) {
    CAPTURE(row.about);
    Fixture peer;
    for (const auto& entry : peer.caches.entries())
      entry->is_interrupted = entry->collection.resource == kWidgets;
    const std::string get = "GET /apis/example.com/v1/namespaces/n/widgets/x";
    peer.api.on("GET", get.substr(4)).always().answer(row.status, row.answer);
    peer.on(create_job("x-w-0")).always().answer(201, stored(kube::kJobs, "x-w-0", "u1"));
    CHECK(peer.run(kWidgets, plan_of({create_job("x-w-0")})));
    const Lines asked = peer.asked();
    CHECK(asked.front() == get);
    CHECK((asked.back() == "POST " + kJobsPath) == row.is_created);
  }
}

TEST_CASE_METHOD(Fixture, "in a terminating namespace no status is written either") {
  const kube::Action desired = create_job("x-w-0");
  on(desired).answer(403, refusal(403, "Forbidden", "no, because it is being terminated"));
  kube::Plan plan = with_status(plan_of({desired}), false);
  plan.requeue_after = milliseconds(20);
  const auto done = run(kWidgets, std::move(plan));
  REQUIRE(done);
  CHECK_FALSE(*done);
  CHECK(asked() == Lines{"POST " + kJobsPath});
  CHECK(sent_events().empty());
}

TEST_CASE_METHOD(Fixture, "actions wait for a status that must be written first") {
  kube::Plan plan = with_status(plan_of({create_job("x-w-0")}), false);
  plan.status_time = kube::Plan::StatusTime::kBeforeActions;
  plan.events.push_back(kFailed);
  SECTION("it is written") {
    api.on("POST", kJobsPath).answer(201, stored(kube::kJobs, "x-w-0", "u1"));
    REQUIRE(run(kWidgets, std::move(plan)));
    CHECK(asked() == Lines{"PATCH " + kStatusPath, "POST " + kJobsPath});
    CHECK(sent_events() == Lines{"Warning FailedJobs: it has failed"});
  }
  SECTION("another client wrote in between") {
    plan.status_patch = std::nullopt;
    const std::string status = "/apis/example.com/v1/namespaces/n/gadgets/x";
    api.on("PATCH", status + "/status").answer(409, refusal(409, "Conflict", "modified"));
    kube::Plan conflicting = with_status(std::move(plan), false);
    const auto done = run(kGadgets, std::move(conflicting));
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::kConflict);
    // The object is read, and nothing else happens.
    CHECK(asked() == Lines{"PATCH " + status + "/status", "GET " + status});
    CHECK(sent_events().empty());
  }
}

TEST_CASE_METHOD(Fixture, "nothing is written while this process may not") {
  may_write = false;
  const auto done = run(kWidgets, with_status(plan_of({create_job("x-w-0")}), false));
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("has not renewed its Lease in time"));
  CHECK(api.log().empty());
  may_write = true;
  api.on("POST", kJobsPath).answer(201, stored(kube::kJobs, "x-w-0", "u1"));
  CHECK(run(kWidgets, with_status(plan_of({create_job("x-w-0")}), false)));
  CHECK(asked() == Lines{"POST " + kJobsPath, "PATCH " + kStatusPath});
}
