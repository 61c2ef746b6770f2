// Reads the latest warning about an object, for plans that ask for it (kube::Plan::needs_events).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "kube/client/api_client.hh"
#include "kube/model/plan.hh"

namespace kube {

// This holds the warning that was read for the plans of one object.
struct LastWarning {
  // "REASON: MESSAGE" of the latest warning about `source`; "" where there is none, or where a
  // later event says that the object has made progress.
  std::string text;
  std::optional<EventSource> source;
  std::optional<std::chrono::steady_clock::time_point> read_at;
  bool is_new = false;  // it was read in this reconcile
};

// Reads the warning if the plan asks for it, for the same object at most every 30 s, and forgets it
// if the plan does not ask. Returns true if `last` may have changed, so that it makes sense to plan
// again. An error of the API server counts as no events: a plan can do without them.
Task<bool> read_last_warning(ApiClient& client, std::string ns, std::optional<EventSource> source,
                             std::shared_ptr<LastWarning> last);

}  // namespace kube
