#include "runtimes/trainjob/unreadable.hh"

#include <string>
#include <string_view>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer {
namespace {

constexpr std::size_t kMessageLimit = 1'000;

}  // namespace

kube::PlannedEvent unreadable_event(const kube::FieldErrors& errors) {
  return {"Warning", std::string(kUnreadable),
          keep_head("the controller cannot read this object and leaves its children as they are: " +
                        kube::to_string(errors) + "; correct or recreate it",
                    kMessageLimit)};
}

kube::Plan plan_unreadable(const kube::Json& object, const kube::FieldErrors& errors) {
  const auto* deleted = object.find_path({"metadata", "deletionTimestamp"});
  const auto* status = object.find("status");
  const std::string_view phase = status ? status->get_string("phase") : std::string_view();
  if (deleted || phase == "Complete" || phase == "Failed") return {};
  kube::PlannedEvent event = unreadable_event(errors);
  const bool is_recorded = status && status->get_string("reason") == event.reason &&
                           status->get_string("message") == event.message;
  if (is_recorded) return {};
  kube::Plan plan;
  // A text that is no object has no known status, so a status would be written again each time.
  if (!object.is_object()) {
    plan.events.push_back(std::move(event));
    return plan;
  }
  kube::Json written = kube::Json::object({{"reason", event.reason}, {"message", event.message}});
  if (phase.empty()) written.set("phase", "Pending");
  plan.status_patch = kube::Json::object({{"status", std::move(written)}});
  plan.events.push_back(std::move(event));
  return plan;
}

}  // namespace trainer
