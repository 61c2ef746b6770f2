#include "runtimes/lifecycle/finished_marker.hh"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::Json;

// These members are kept, of objects of all kinds. Counters and facts about nodes are left out.
constexpr std::string_view kKept[] = {"phase",
                                      "reason",
                                      "message",
                                      "restarts",
                                      "executionAttempts",
                                      "firstFailure",
                                      "stall",
                                      "startTime",
                                      "completionTime",
                                      "activeDeadlineSeconds",
                                      "ttlSecondsAfterFinished"};
// An object has 256 KiB for all annotations, and a condition's message may be 32 KiB.
constexpr std::size_t kMaxMessage = 1'024;
constexpr std::size_t kMaxMarker = 64U << 10;

void cut_message(Json& holder) {
  if (const auto message = holder.get_string("message"); message.size() > kMaxMessage)
    holder.set("message", keep_head(message, kMaxMessage));
}

Json kept_of(const Json& status) {
  Json kept = Json::object();
  for (const std::string_view member : kKept)
    if (const Json* value = status.find(member)) kept.set(member, *value);
  cut_message(kept);
  if (Json* const failure = kept.find("firstFailure")) cut_message(*failure);
  Json conditions = Json::array();
  for (Json condition : status.get_array("conditions")) {
    cut_message(condition);
    conditions.push_back(std::move(condition));
  }
  kept.set("conditions", std::move(conditions));
  return kept;
}

}  // namespace

std::optional<kube::Action> mark_finished(const kube::Resource& resource,
                                          const kube::ObjectMeta& meta, const Json& status) {
  if (marked_status(meta)) return std::nullopt;
  Json marker = Json::object({{"name", meta.name}, {"status", kept_of(status)}});
  Json annotations = Json::object();
  annotations.set(kFinishedMarkerKey, kube::print_json(marker));
  kube::Action action;
  action.verb = kube::Action::Verb::kMergePatch;
  action.resource = resource;
  action.key = meta.key();
  // A job of the same name that was made meanwhile has not finished, and must get no mark.
  action.body = Json::object(
      {{"metadata", Json::object({{"uid", meta.uid}, {"annotations", std::move(annotations)}})}});
  action.description = fmt::format("mark {} {} as finished", resource.kind, meta.key().to_string());
  return action;
}

std::optional<Json> marked_status(const kube::ObjectMeta& meta) {
  const auto at = meta.annotations.find(kFinishedMarkerKey);
  if (at == meta.annotations.end() || at->second.size() > kMaxMarker) return std::nullopt;
  auto marker = kube::parse_json(at->second);
  if (!marker || marker->get_string("name") != meta.name || !marker->get("status").is_object())
    return std::nullopt;
  return std::move((*marker)["status"]);
}

kube::PlannedEvent restored_event() {
  return {"Normal", "Restored",
          fmt::format("it had finished before it was restored, and its status is put back; to run "
                      "it again, delete it and create it without the annotation {}",
                      kFinishedMarkerKey)};
}

}  // namespace trainer
