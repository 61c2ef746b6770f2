#include "kube/manager/status_writer.hh"

#include <utility>

#include "kube/client/json_scan.hh"
#include "kube/model/json_text.hh"

namespace kube {

Task<Result<void>> StatusWriter::patch(Resource resource, ObjectKey key,
                                       std::string resource_version, Json patch, bool is_minor) {
  const auto permit =
      co_await writes_.acquire(Semaphore::kNoDeadline, Semaphore::Priority::kLow, key.ns);
  if (!permit) co_return tl::unexpected(permit.error());
  if (log_.is_debug()) {
    log_.debug("status",
               {{"object", resource.kind + " " + key.to_string()}, {"patch", print_json(patch)}});
  }
  patch["metadata"].set("resourceVersion", std::move(resource_version));
  const auto write = pending_.begin(key);
  auto answer = co_await client_.merge_patch(resource, key, std::move(patch), "status");
  if (answer) {
    const EventRouter::SourceScope scope(
        router_, is_minor ? ChangeSource::kOwnCounters : ChangeSource::kOwnStatus);
    caches_.update_if_newer(resource, *answer);
    end(*write, scan_identity(*answer).version);
    co_return Result<void>{};
  }
  end(*write, "");
  if (answer.error().code == ErrorCode::kNotFound) co_return Result<void>{};
  if (answer.error().code == ErrorCode::kConflict) {
    // The object is newer than the observed version, perhaps by a write of this process whose
    // answer was lost. Its event may come after those of other watches. A plan from the old state
    // could create children of an earlier attempt again.
    (void)co_await read(resource, key);
  }
  co_return tl::unexpected(answer.error().at("status of " + resource.kind + " " + key.to_string()));
}

Task<Result<std::string>> StatusWriter::read(Resource resource, ObjectKey key) {
  const auto current = co_await client_.get(resource, key);
  if (!current && current.error().code == ErrorCode::kNotFound) co_return std::string();
  if (!current) co_return tl::unexpected(current.error());
  caches_.update_if_newer(resource, print_json(*current));
  co_return ObjectMeta::of(*current).resource_version;
}

void StatusWriter::end(const PendingStatusWrites::Write& write, std::string_view written_version) {
  using Outcome = PendingStatusWrites::Outcome;
  const Outcome outcome = pending_.end(write, written_version);
  if (outcome == Outcome::kNothing) return;
  const auto debounce =
      outcome == Outcome::kOwnWrite ? router_.debounce_of_change() : std::optional(Debounce::kNone);
  if (debounce) router_.enqueue(controller_, write.object_key, *debounce);
}

}  // namespace kube
