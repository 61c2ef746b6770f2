#include "tests/component/sample_kind/widget_kind.hh"

#include <memory>
#include <utility>

#include "kube/manager/planned_controller.hh"
#include "kube/model/resources.hh"

namespace sample {
namespace {

using kube::Json;
using kube::StoredObject;

constexpr const char* kWidgetLabel = "example.com/widget";
const kube::Collection kAllWidgets{kWidgets, ""};
const kube::Collection kTheirConfigMaps{kube::kConfigMaps, kWidgetLabel};

// The rules are pure.
kube::Plan plan_widget(const kube::ObjectKey& key, const std::string& uid, bool has_config_map) {
  kube::Plan plan;
  if (has_config_map) {
    plan.status_patch = Json::object({{"status", Json::object({{"ready", true}})}});
    return plan;
  }
  plan.actions.push_back(
      {.resource = kube::kConfigMaps,
       .key = key,
       .body =
           Json::object({{"metadata", Json::object({{"name", key.name}, {"namespace", key.ns}})}}),
       .owner_uid = uid});
  return plan;
}

class WidgetController final : public kube::PlannedController<Json> {
 public:
  explicit WidgetController(const kube::ControllerContext& context)
      : PlannedController(
            context, context.caches.get<StoredObject>(kAllWidgets),
            std::make_shared<kube::DecodedObjects<Json>>([](auto object) { return *object; })) {}

 private:
  kube::Task<kube::Plan> plan(const Subject& widget) override {
    const auto& config_maps = context().caches.get<StoredObject>(kTheirConfigMaps);
    co_return plan_widget(widget.key(), widget.stored->uid,
                          config_maps.find(widget.key()) != nullptr);
  }
};

kube::Task<kube::Result<trainer::AdmissionAnswer>> validate(trainer::AdmissionRequest request,
                                                            trainer::AdmissionReader&) {
  const bool has_spec = request.object.find("spec") != nullptr;
  co_return trainer::AdmissionAnswer{.is_allowed = has_spec,
                                     .message = has_spec ? "" : "spec: required"};
}

tl::expected<trainer::ObjectState, kube::FieldErrors> read_state(const Json& object,
                                                                 std::string_view) {
  return trainer::ObjectState{.phase = object.find_path({"status", "ready"}) ? "Ready" : ""};
}

}  // namespace

trainer::KindRegistration widget_registration() {
  trainer::KindRegistration made;
  made.controller.name = "widget";
  made.controller.group_kind = "Widget.example.com";
  made.controller.workers = 2;
  made.controller.watches = {
      kube::Watch::only_read<StoredObject>(kAllWidgets, kube::StoredObjectTransform(kWidgets)),
      kube::Watch::of<WidgetController, StoredObject>(kTheirConfigMaps, kube::transform_owner,
                                                      &WidgetController::on_child)};
  made.controller.rules = {
      {"What users create.", {"example.com"}, {"widgets"}, {}, {"get", "list", "watch"}}};
  made.controller.make = [](const kube::ControllerContext& context) {
    return std::make_unique<WidgetController>(context);
  };
  made.admission.webhooks = {{.configuration = "validator.example.com",
                              .name = "validator.widget.example.com",
                              .path = "/validate-widget",
                              .resource = kWidgets}};
  made.admission.handlers = {{"/validate-widget", validate, {}}};
  // The schema is written by hand here; a real kind describes its struct (api/describe).
  made.crds = {
      {kWidgets, {{.name = "v1", .make_schema = [] {
                     return trainer::wire::Schema{.document = Json::object({{"type", "object"}})};
                   }}}}};
  made.render = {
      {.resource = kWidgets, .render = [](const Json& object, const trainer::RenderInputs&) {
         trainer::Rendered rendered;
         for (kube::Action& action :
              plan_widget(kube::ObjectMeta::of(object).key(), "", false).actions)
           rendered.objects.push_back({std::move(action.body), {}});
         return rendered;
       }}};
  made.why = {kWidgetLabel, read_state};
  made.logs = {kWidgetLabel, read_state, [](const kube::ObjectMeta& pod) {
                 return std::optional(trainer::PodPlace{.role = pod.labels.at(kWidgetLabel)});
               }};
  return made;
}

}  // namespace sample
