#include "kube/manager/last_warning.hh"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/model/visible_text.hh"

namespace kube {
namespace {

constexpr std::size_t kMaxPages = 2;  // any user can write Events about an object
constexpr std::size_t kMaxWarning = 2'048;

// After such an event of the scheduler, the kubelet or the Job controller, an earlier warning no
// longer holds. Events of other components, such as an autoscaler, do not show progress.
bool is_progress(std::string_view reason) {
  return reason == "Scheduled" || reason == "Pulling" || reason == "Pulled";
}

// A Job controller creates several pods at a time, and times of events are whole seconds. So a pod
// that was created in the second in which another one was refused does not outweigh the refusal.
bool is_progress_of_others(std::string_view reason) {
  return reason == "SuccessfulCreate";
}

// The latest warning among events in the order of a list.
struct Latest {
  std::string at;
  std::string text;

  void take(const Json& event) {
    const std::string_view reason = event.get_string("reason");
    const bool is_warning = event.get_string("type") == "Warning";
    const bool is_of_others = !is_warning && is_progress_of_others(reason);
    if (!is_warning && !is_of_others && !is_progress(reason)) return;
    std::string time(event.get_string("lastTimestamp", event.get_string("eventTime")));
    if (time < at || (is_of_others && time == at)) return;
    at = std::move(time);
    text.clear();
    if (!is_warning) return;
    // The API server limits neither of these in a core/v1 Event.
    text = keep_head(fmt::format("{}: {}", reason, event.get_string("message")), kMaxWarning);
  }
};

}  // namespace

Task<bool> read_last_warning(ApiClient& client, std::string ns, std::optional<EventSource> source,
                             std::shared_ptr<LastWarning> last) {
  if (!source) {
    const bool has_text = !last->text.empty();
    last->text.clear();
    co_return has_text;
  }
  const auto now = client.clock().steady();
  // The plan may ask about another object of the same job sooner: the events of that object are new
  // to it.
  const bool is_same = source == last->source;
  const auto interval = is_same ? kEventInterval : kEventDelay;
  if (last->read_at && now - *last->read_at < interval) {
    const bool has_text = !is_same && !last->text.empty();
    if (!is_same) last->text.clear();
    co_return has_text;
  }
  last->read_at = now;
  last->source = source;
  const std::string selector =
      fmt::format("involvedObject.kind={},involvedObject.name={}", source->kind, source->name);
  std::string query = "fieldSelector=" + percent_encode(selector);
  Latest latest;
  std::function<void(std::string_view)> on_item = [&latest](std::string_view item) {
    static const JsonFilter kRead{
        "",
        JsonFilter::Members::kInclude,
        {{"type"}, {"reason"}, {"message"}, {"lastTimestamp"}, {"eventTime"}}};
    if (const auto event = parse_json(item, kObjectLimits, kRead)) latest.take(*event);
  };
  const auto listed =
      co_await client.list(kEvents, std::move(ns), std::move(query), std::move(on_item), kMaxPages);
  last->is_new = true;
  last->text = listed ? std::move(latest.text) : std::string();
  co_return true;
}

}  // namespace kube
