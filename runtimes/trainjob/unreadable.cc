#include "runtimes/trainjob/unreadable.hh"

#include <string>
#include <string_view>
#include <utility>

#include "kube/model/unreadable.hh"

namespace trainer {

kube::Plan plan_unreadable(const kube::Json& object, const kube::FieldErrors& errors) {
  const auto* deleted = object.find_path({"metadata", "deletionTimestamp"});
  const auto* status = object.find("status");
  const std::string_view phase = status ? status->get_string("phase") : std::string_view();
  if (deleted || phase == "Complete" || phase == "Failed") return {};
  kube::PlannedEvent event = kube::unreadable_event(errors);
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
