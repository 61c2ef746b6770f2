// Reads the latest warning about an object, for plans that ask for it (kube::Plan::needs_events).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "kube/client/api_client.hh"
#include "kube/model/plan.hh"

namespace trainer {

// Holds what was read for the plans of one job. `text`: "REASON: MESSAGE" of the latest warning
// about `source`;
// "" where there is none, or where a later event says that the object has made progress.
struct LastWarning {
  std::string text;
  std::optional<kube::EventSource> source;
  std::optional<std::chrono::steady_clock::time_point> read_at;
};

// Reads it where the plan asks for it, the same object at most every 30 s, and forgets it where the
// plan does not. True where `last` may have changed, so that planning again makes sense. An error
// of the API server counts as no events: a plan can do without them.
kube::Task<bool> read_last_warning(kube::ApiClient& client, std::string ns,
                                   std::optional<kube::EventSource> source,
                                   std::shared_ptr<LastWarning> last);

}  // namespace trainer
