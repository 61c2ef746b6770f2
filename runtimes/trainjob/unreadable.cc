#include "runtimes/trainjob/unreadable.hh"

#include <string>
#include <string_view>

#include "runtimes/trainjob/text.hh"

namespace trainer {
namespace {

constexpr std::string_view kReason = "Unreadable";
constexpr std::size_t kMessageLimit = 1'000;

}  // namespace

Plan plan_unreadable(const kube::Json& object, const kube::FieldErrors& errors) {
  const auto* deleted = object.find_path({"metadata", "deletionTimestamp"});
  const auto* status = object.find("status");
  const std::string_view phase = status ? status->get_string("phase") : std::string_view();
  if (deleted || phase == "Complete" || phase == "Failed") return {};
  const std::string message =
      keep_head("the controller cannot read this object and leaves its children as they are: " +
                    kube::to_string(errors) + "; correct or recreate it",
                kMessageLimit);
  if (status && status->get_string("reason") == kReason && status->get_string("message") == message)
    return {};
  Plan plan;
  kube::Json told = kube::Json::object({{"reason", std::string(kReason)}, {"message", message}});
  if (phase.empty()) told.set("phase", "Pending");
  plan.status_patch = kube::Json::object({{"status", std::move(told)}});
  plan.events.push_back({"Warning", std::string(kReason), message});
  return plan;
}

}  // namespace trainer
