#include "tests/component/sample_kind/widget_kind.hh"

#include <memory>
#include <utility>

#include "kube/manager/event_router.hh"
#include "kube/manager/plan_runner.hh"
#include "kube/manager/stored_object.hh"
#include "kube/model/resources.hh"

namespace sample {
namespace {

using kube::Json;
using kube::Result;
using kube::StoredObject;
using kube::Task;

constexpr const char* kWidgetLabel = "example.com/widget";

kube::Collection widgets() {
  return {kWidgets, ""};
}
kube::Collection config_maps() {
  return {kube::kConfigMaps, kWidgetLabel};
}

// The rules: pure.
kube::Plan plan_widget(const StoredObject& widget, bool has_config_map) {
  kube::Plan plan;
  if (has_config_map) {
    plan.status_patch = Json::object({{"status", Json::object({{"ready", true}})}});
    return plan;
  }
  kube::Action create;
  create.resource = kube::kConfigMaps;
  create.key = widget.object_key;
  create.owner_uid = widget.uid;
  create.body = Json::object({{"metadata", Json::object({{"name", widget.object_key.name},
                                                         {"namespace", widget.object_key.ns}})}});
  plan.actions.push_back(std::move(create));
  return plan;
}

class WidgetController final : public kube::Controller {
 public:
  using Stored = std::shared_ptr<const StoredObject>;

  explicit WidgetController(const kube::ControllerContext& context)
      : context_(context),
        widgets_(context.caches.get<StoredObject>(widgets())),
        config_maps_(context.caches.get<StoredObject>(config_maps())) {}

  Task<Result<kube::Requeue>> reconcile(kube::ObjectKey key) override {
    const auto widget = widgets_.find(key);
    if (!widget) co_return kube::Requeue{};
    kube::Plan plan = plan_widget(*widget, config_maps_.find(key) != nullptr);
    kube::ObjectRef object{key, widget->uid, widget->resource_version};
    co_return co_await context_.plan_runner.run(std::move(object), std::move(plan));
  }

  void on_config_map(const Stored& before, const Stored& after) {
    const StoredObject& dependent = *(after ? after : before);
    context_.router.enqueue_owner(context_.id, dependent.object_key.ns, dependent.controller_uid,
                                  kube::Debounce::kNone);
  }

 private:
  const kube::ControllerContext context_;
  const kube::ObjectCache<StoredObject>& widgets_;
  const kube::ObjectCache<StoredObject>& config_maps_;
};

Task<Result<trainer::AdmissionAnswer>> validate(trainer::AdmissionRequest request,
                                                trainer::AdmissionReader&) {
  trainer::AdmissionAnswer answer;
  answer.is_allowed = request.object.find("spec") != nullptr;
  if (!answer.is_allowed) answer.message = "spec: required";
  co_return answer;
}

// The schema is written by hand here; a real kind describes its struct (api/describe).
trainer::wire::Schema make_schema() {
  trainer::wire::Schema schema;
  schema.document = Json::object({{"type", "object"}});
  return schema;
}

tl::expected<trainer::Rendered, kube::FieldErrors> render(const Json& object,
                                                          const trainer::RenderInputs&) {
  StoredObject widget;
  widget.object_key = kube::ObjectMeta::of(object).key();
  trainer::Rendered rendered;
  for (kube::Action& action : plan_widget(widget, false).actions)
    rendered.objects.push_back({std::move(action.body), {}});
  return rendered;
}

tl::expected<trainer::ObjectState, kube::FieldErrors> read_state(const Json& object,
                                                                 std::string_view) {
  trainer::ObjectState state;
  if (object.find_path({"status", "ready"}) != nullptr) state.phase = "Ready";
  return state;
}

std::optional<trainer::PodPlace> read_place(const kube::ObjectMeta& pod) {
  trainer::PodPlace place;
  place.role = pod.labels.at(kWidgetLabel);
  return place;
}

}  // namespace

trainer::KindRegistration widget_registration() {
  trainer::KindRegistration made;
  made.controller.name = "widget";
  made.controller.group_kind = "Widget.example.com";
  made.controller.workers = 2;
  made.controller.watches = {
      kube::Watch::only_read<StoredObject>(widgets(), kube::StoredObjectTransform(kWidgets)),
      kube::Watch::of<WidgetController, StoredObject>(config_maps(), kube::transform_owner,
                                                      &WidgetController::on_config_map),
  };
  made.controller.rules = {
      {"What users create.", {"example.com"}, {"widgets"}, {}, {"get", "list", "watch"}}};
  made.controller.make = [](const kube::ControllerContext& context) {
    return std::make_unique<WidgetController>(context);
  };
  trainer::Webhook webhook;
  webhook.configuration = "validator.example.com";
  webhook.name = "validator.widget.example.com";
  webhook.path = "/validate-widget";
  webhook.resource = kWidgets;
  made.admission.webhooks = {webhook};
  made.admission.handlers = {{"/validate-widget", validate, {}}};
  made.crds = {{kWidgets, {{.name = "v1", .make_schema = make_schema}}}};
  trainer::RenderHook hook;
  hook.resource = kWidgets;
  hook.render = render;
  made.render = {hook};
  made.why = {kWidgetLabel, read_state};
  made.logs = {kWidgetLabel, read_state, read_place};
  return made;
}

}  // namespace sample
