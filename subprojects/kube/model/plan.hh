// What a plan asks for: writes, statuses, events. Pure data; PlanRunner runs it.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace kube {

struct Action {
  enum class Verb {
    kCreate,      // POST `body`; AlreadyExists is decided by `owner_uid`
    kApply,       // server-side apply of `body`
    kMergePatch,  // `body` is the patch
    kDelete,      // NotFound counts as done
  };
  Verb verb = Verb::kCreate;
  Resource resource;
  ObjectKey key;
  // kMergePatch: "" for the object itself, else "status".
  std::string subresource;
  Json body;
  // kApply: whether it takes over fields that other managers own. False where the object must not
  // exist yet: then such fields are a conflict.
  bool is_forced = true;
  // kDelete: the uid that the object must have, and the propagation policy ("Foreground",
  // "Background").
  std::string uid;
  std::string propagation;
  // kCreate answered 409: where the existing object has a controller owner of this uid, the create
  // counts as done; else it is an error that names the owner. Empty: it counts as done with any
  // owner; claims that outlive their JobSet are meant to be found again.
  std::string owner_uid;
  // kCreate answered 409: an object without a controller owner counts as owned.
  bool takes_unowned = false;
  // Actions of one stage run side by side (a bounded number); the next stage starts when all of
  // them have succeeded.
  int stage = 0;
  // An error of this action becomes a Warning event of this reason on the object
  // ("JobCreationFailed"); empty: the controller's default.
  std::string failure_reason;
  // How errors name the action; empty: verb, kind and key.
  std::string description;
};

// A write that was refused, and is tried again: the API server, an admission plugin, a webhook or
// an object of the same name is in the way.
struct Refusal {
  Resource resource;    // of the object that was to be written
  std::string message;  // names the object and who refused it
};

// An object, in the namespace of the plan's object, whose events say why it makes no progress.
struct EventSource {
  std::string kind;
  std::string name;
  friend bool operator==(const EventSource&, const EventSource&) = default;
};

struct PlannedEvent {
  std::string type = "Normal";
  std::string reason;
  std::string message;
  bool is_terminal = false;  // it says how the object has ended, so it is never dropped
  // Of a terminal event: the object has failed, also where the event's type is Normal.
  bool is_failure = false;
  // True: it is recorded after the actions if all of them have succeeded, even if the status is
  // held back or refused. False: it is recorded after the status, and not at all if that is held
  // back (see is_status_minor) or refused.
  bool is_of_actions = false;
};

// Run in this order: actions by stage, then the status (with the resourceVersion that was
// observed), then the events.
struct Plan {
  std::vector<Action> actions;
  // A merge patch for /status: {"status": {...}}, the difference only. metadata.resourceVersion is
  // added by the executor.
  std::optional<Json> status_patch;
  // The patch changes counters only: it may be held back to one write a second.
  bool is_status_minor = false;
  std::vector<PlannedEvent> events;
  // Written before the actions instead of after them: a finished or restarting object must be known
  // as such before anything is deleted.
  bool is_status_first = false;
  std::optional<std::chrono::milliseconds> requeue_after;
  // The latest warning about this object could explain what the status cannot: the plan may be run
  // without it, and is made again once it has been read.
  std::optional<EventSource> needs_events;
  // As requeue_after, also where an action fails: its backoff could be longer.
  std::optional<std::chrono::milliseconds> due_after;

  // Makes that this delay at the latest. Rounded up: an earlier reconcile would come twice.
  void requeue_within(std::chrono::microseconds delay) {
    const auto wait =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(delay), std::chrono::milliseconds(0));
    requeue_after = requeue_after ? std::min(*requeue_after, wait) : wait;
  }
  // Likewise, for what has to happen at a time, such as the end of a job at its deadline.
  void due_within(std::chrono::microseconds delay) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(delay);
    requeue_within(wait);
    due_after = due_after ? std::min(*due_after, wait) : wait;
  }
};

}  // namespace kube
