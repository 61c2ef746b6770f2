// The frame of controllers that reconcile by plans, with a kind that owns a gadget.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/manager/planned_controller.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/recorded_metrics.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"

namespace {

using kube::Json;
using Lines = std::vector<std::string>;

const kube::Resource kWidgets{"example.com", "v1", "widgets", "Widget", true};
const kube::Resource kGadgets{"example.com", "v1", "gadgets", "Gadget", true};
const kube::Collection kAllWidgets{kWidgets, ""};
const std::string kGadgetPath = "/apis/example.com/v1/namespaces/n/gadgets/x";
const kube::NamedObject kGadget{kGadgets, {"n", "x"}};

struct Widget {
  kube::FieldErrors errors;
};

// Plans as the test says, and records what it was asked.
class WidgetController final : public kube::PlannedController<Widget> {
 public:
  WidgetController(const kube::ControllerContext& context)
      : PlannedController(context, context.caches.get<kube::StoredObject>(kAllWidgets),
                          std::make_shared<kube::DecodedObjects<Widget>>(
                              [](const std::shared_ptr<const Json>& object) {
                                Widget widget;
                                if (!object->find("spec"))
                                  widget.errors.push_back(kube::required("spec", ""));
                                return widget;
                              })) {}

  std::function<kube::Plan(const kube::ObjectMemory&)> on_plan;
  Lines calls;

 private:
  const kube::FieldErrors* errors_of(const Widget& widget) const override {
    return widget.errors.empty() ? nullptr : &widget.errors;
  }
  kube::Task<kube::Plan> plan(const Subject& subject) override {
    calls.push_back("plan");
    co_return on_plan(*subject.memory);
  }
  void measure(const Subject& subject) override {
    calls.push_back("measure " + subject.stored->resource_version);
  }
  void on_status(const Subject&, const kube::Plan&) override { calls.push_back("status"); }
  void on_done(const Subject&, const kube::Plan&) override { calls.push_back("done"); }
};

std::string widget(const std::string& version, bool is_readable = true) {
  return R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","namespace":"n",)"
         R"("uid":"u1","resourceVersion":")" +
         version + "\"}" + (is_readable ? R"(,"spec":{}})" : "}");
}

const std::string kStoredGadget =
    R"({"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"x","namespace":"n",)"
    R"("ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"x","uid":"u1",)"
    R"("controller":true}]}})";

struct Fixture : kube::test::ScriptedPeer {
  kube::CacheSet caches;
  kube::EventRouter router;
  kube::Semaphore writes{4, kube::Pacing::kStatusShare};
  kube::Executor executor{io, client, caches, writes, "manager", log};
  kube::EventRecorder events{client, "manager"};
  kube::test::RecordedMetrics metrics;
  kube::ControllerRegistration registration;
  kube::StatusWriter statuses{client, caches, router, writes, log};
  std::unique_ptr<kube::PlanRunner> plan_runner;
  std::unique_ptr<WidgetController> controller;

  Fixture() {
    registration.watches.push_back(kube::Watch::only_read<kube::StoredObject>(
        kAllWidgets, kube::StoredObjectTransform(kWidgets)));
    caches.add(kAllWidgets, registration.watches.front().make_cache, true);
    const std::size_t id = router.add_controller([](const kube::ObjectKey&, kube::Debounce) {});
    statuses.set_controller(id);
    router.set_owner(id, "u1", {"n", "x"});
    plan_runner = std::make_unique<kube::PlanRunner>(registration, executor, statuses, events,
                                                     clock, metrics, log);
    controller = std::make_unique<WidgetController>(kube::ControllerContext{
        io, client, caches, router, id, *plan_runner, executor, log, metrics});
    put(widget("5"));
  }
  kube::AnyObjectCache& widgets() { return caches.add(kAllWidgets, nullptr, true); }
  void put(const std::string& text) { REQUIRE(widgets().upsert(text)); }
  kube::Result<kube::Requeue> reconcile() {
    return kube::run_task(io, controller->reconcile({"n", "x"}));
  }
  Lines requests() const {
    Lines lines;
    for (const auto& request : api.log()) lines.push_back(request.method + " " + request.path);
    return lines;
  }
};

kube::Plan needs_gadget() {
  kube::Plan plan;
  plan.needs_objects.push_back(kGadget);
  plan.read_stamp = {.shape = 3};
  return plan;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "an object that is gone, or cannot be read, is not planned") {
  CHECK(kube::run_task(io, controller->reconcile({"n", "other"})));
  CHECK(controller->calls.empty());
  put(widget("6", false));
  CHECK(reconcile());
  CHECK(controller->calls == Lines{"measure 6"});
  CHECK(requests().empty());
  CHECK(events.pending() == 1);
}

TEST_CASE_METHOD(Fixture, "what a plan needs is read once, and known to later plans") {
  api.on("GET", kGadgetPath).answer(200, kStoredGadget);
  controller->on_plan = [](const kube::ObjectMemory& memory) {
    const auto* const gadget = memory.objects.find(kGadgets, "x");
    if (!gadget) return needs_gadget();
    CHECK(gadget->object->get_string("kind") == "Gadget");
    CHECK(gadget->controller_uid == "u1");
    CHECK(gadget->stamp == kube::ReadStamp{.shape = 3});
    return kube::Plan();
  };
  CHECK(reconcile());
  CHECK(controller->calls == Lines{"measure 5", "plan", "plan", "status", "done"});
  controller->calls.clear();
  CHECK(reconcile());
  CHECK(controller->calls == Lines{"measure 5", "plan", "status", "done"});
  CHECK(requests() == Lines{"GET " + kGadgetPath});
}

TEST_CASE_METHOD(Fixture, "a plan sees what was read in its own reconcile") {
  api.on("GET", kGadgetPath).always().answer(404, R"({"reason":"NotFound","code":404})");
  std::vector<bool> is_new;
  controller->on_plan = [&](const kube::ObjectMemory& memory) {
    const auto* const gadget = memory.objects.find(kGadgets, "x");
    if (!gadget) return needs_gadget();
    CHECK_FALSE(gadget->exists());
    is_new.push_back(gadget->is_new);
    return kube::Plan();
  };
  CHECK(reconcile());
  CHECK(reconcile());
  CHECK(is_new == std::vector<bool>{true, false});
}

TEST_CASE_METHOD(Fixture, "a plan that always asks for more ends with an error") {
  api.on("GET", kGadgetPath).always().answer(200, kStoredGadget);
  controller->on_plan = [](const kube::ObjectMemory&) { return needs_gadget(); };
  const auto done = reconcile();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == kube::ErrorCode::kInternal);
  CHECK_THAT(done.error().message, Catch::Contains("Widget n/x: the plan asks for more"));
}

TEST_CASE_METHOD(Fixture, "an object that cannot be asked for ends the reconcile") {
  api.on("GET", kGadgetPath).always().answer(403, R"({"reason":"Forbidden","code":403})");
  controller->on_plan = [](const kube::ObjectMemory&) { return needs_gadget(); };
  const auto done = reconcile();
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("Widget n/x: read Gadget n/x"));
  CHECK(controller->calls == Lines{"measure 5", "plan"});
}

TEST_CASE_METHOD(Fixture, "what is written and not watched is known, as long as nothing fails") {
  kube::Action create;
  create.resource = kGadgets;
  create.key = kGadget.key;
  create.body = *kube::parse_json(kStoredGadget);
  controller->on_plan = [&](const kube::ObjectMemory& memory) {
    kube::Plan plan;
    if (!memory.objects.find(kGadgets, "x")) plan.actions.push_back(create);
    return plan;
  };
  api.on("POST", "/apis/example.com/v1/namespaces/n/gadgets").answer(500, "{}");
  CHECK_FALSE(reconcile());
  CHECK(controller->calls == Lines{"measure 5", "plan", "status"});
  api.on("POST", "/apis/example.com/v1/namespaces/n/gadgets").answer(201, kStoredGadget);
  CHECK(reconcile());
  const std::size_t asked = requests().size();
  CHECK(reconcile());
  CHECK(requests().size() == asked);

  SECTION("a plan has it forgotten") {
    controller->on_plan = [](const kube::ObjectMemory&) {
      kube::Plan plan;
      plan.memory = kube::Plan::Memory::kForget;
      return plan;
    };
    CHECK(reconcile());
  }
  SECTION("the object is gone, and another one has its name") {
    controller->forget("u1");
  }
  bool is_known = true;
  controller->on_plan = [&](const kube::ObjectMemory& memory) {
    is_known = memory.objects.find(kGadgets, "x") != nullptr;
    return kube::Plan();
  };
  CHECK(reconcile());
  CHECK_FALSE(is_known);
}

TEST_CASE_METHOD(Fixture, "an object that is deleted during a read gets no child") {
  controller->on_plan = [](const kube::ObjectMemory& memory) {
    if (!memory.objects.find(kGadgets, "x")) return needs_gadget();
    kube::Plan plan;
    plan.actions.push_back({.resource = kGadgets, .key = {"n", "y"}, .body = Json::object()});
    return plan;
  };
  api.on("GET", kGadgetPath).reply([this](const kube::ReceivedRequest&) {
    REQUIRE(widgets().remove(widget("6")));
    return kube::ScriptedReply(200, kStoredGadget);
  });
  CHECK(reconcile());
  CHECK(requests() == Lines{"GET " + kGadgetPath});
}

TEST_CASE_METHOD(Fixture,
                 "counters are measured once they are stored, since no reconcile follows") {
  api.on("PATCH", "/apis/example.com/v1/namespaces/n/widgets/x/status")
      .always()
      .answer(200, widget("6"));
  for (const bool is_minor : {false, true}) {
    INFO(is_minor);
    put(widget(is_minor ? "15" : "5"));
    controller->calls.clear();
    controller->on_plan = [is_minor](const kube::ObjectMemory&) {
      kube::Plan plan;
      plan.status_patch = Json::object({{"status", Json::object({{"n", 1}})}});
      if (is_minor) plan.status_change = kube::Plan::StatusChange::kCounters;
      return plan;
    };
    CHECK(reconcile());
    REQUIRE_FALSE(controller->calls.empty());
    CHECK((controller->calls.back().starts_with("measure")) == is_minor);
  }
}
