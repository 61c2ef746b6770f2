// A plan says what is to be written, reported and read for one object. Pure data; PlanRunner
// executes it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/named_objects.hh"

namespace kube {

struct Action {
  enum class Verb : std::uint8_t {
    kCreate,      // POST `body`; `owner_uid` decides what AlreadyExists means
    kApply,       // server-side apply of `body`
    kMergePatch,  // `body` is the patch
    kDelete,      // NotFound counts as done
  };
  // kApply: what happens to fields of the body that other managers own.
  enum class OwnedFields : std::uint8_t {
    kTakeOver,
    kConflict,  // the apply fails; for an object that must not exist yet
  };
  // kCreate is answered 409, and the existing object has no controller owner.
  enum class Unowned : std::uint8_t { kRefuse, kAccept };

  Verb verb = Verb::kCreate;
  Resource resource;
  ObjectKey key;
  // kMergePatch: "" for the object itself, else "status".
  std::string subresource;
  Json body;
  OwnedFields owned_fields = OwnedFields::kTakeOver;
  // kDelete: the uid that the object must have, and the propagation policy ("Foreground",
  // "Background").
  std::string uid;
  std::string propagation;
  // kCreate is answered 409: if the existing object has a controller owner of this uid, the create
  // counts as done; else it is an error that names the owner. With an empty uid it counts as done
  // with any owner.
  std::string owner_uid;
  Unowned unowned = Unowned::kRefuse;
  // The actions of one stage run side by side (a bounded number). The next stage starts when all of
  // them have succeeded.
  int stage = 0;
  // An error of this action becomes a Warning event of this reason on the object
  // ("JobCreationFailed"). If it is empty, the controller's default is used.
  std::string failure_reason;
  // Errors name the action by this text; if it is empty, by verb, kind and key.
  std::string description;
};

// This write was refused, and is tried again: the API server, an admission plugin, a webhook or an
// object of the same name is in the way.
struct Refusal {
  Resource resource;    // the resource of the object that was to be written
  std::string message;  // names the object and the component that refused it
  ErrorCode code = ErrorCode::kInternal;
  std::string name = {};  // the name of that object
};

// The events of this object, in the namespace of the plan's object, say why it makes no progress.
struct EventSource {
  std::string kind;
  std::string name;
  friend bool operator==(const EventSource&, const EventSource&) = default;
};

// Something that is missing gets this long before the events about it are read, and they are read
// again after the interval. A user should see within fifteen seconds why an object makes no
// progress.
inline constexpr std::chrono::seconds kEventDelay{5};
inline constexpr std::chrono::seconds kEventInterval{30};

struct PlannedEvent {
  enum class Time : std::uint8_t {
    kWithStatus,  // after the status; not at all if that is held back (see StatusChange) or refused
    kAfterActions,  // after the actions if all of them have succeeded, whatever happens to the
                    // status
  };
  // The end says how the object has ended, if the event is about that. Such an event is never
  // dropped.
  enum class End : std::uint8_t { kNone, kSucceeded, kFailed };

  std::string type = "Normal";
  std::string reason;
  std::string message;
  Time time = Time::kWithStatus;
  End end = End::kNone;
};

// A plan runs in this order: actions by stage, then the status (with the resourceVersion that was
// observed), then the events.
struct Plan {
  enum class StatusChange : std::uint8_t {
    kConditions,
    kCounters,  // counters only: the write may be held back to one a second
  };
  enum class StatusTime : std::uint8_t {
    kAfterActions,
    kBeforeActions,  // a finished or restarting object must be known as such before deletions
  };
  // The memory says what happens after this plan to the objects that were read or written by name.
  enum class Memory : std::uint8_t {
    kKeep,
    kReadAgain,  // the next plan needs them as they are then
    kForget,     // no plan needs them any more
  };

  std::vector<Action> actions;
  // This is a merge patch for /status: {"status": {...}}, the difference only. The executor adds
  // metadata.resourceVersion.
  std::optional<Json> status_patch;
  StatusChange status_change = StatusChange::kConditions;
  StatusTime status_time = StatusTime::kAfterActions;
  std::vector<PlannedEvent> events;
  std::optional<std::chrono::milliseconds> requeue_after;
  // A reconcile follows after this time at the latest, also if an action fails and its backoff
  // would be longer.
  std::optional<std::chrono::milliseconds> due_after;

  // Without these objects the plan is not complete, and holds nothing else. They are read, and the
  // plan is made again.
  std::vector<NamedObject> needs_objects;
  // The latest warning about this object could explain what the status cannot. The plan may be run
  // without it, and is made again once it has been read.
  std::optional<EventSource> needs_events;
  // The stamp of what is read or written by name for this plan.
  ReadStamp read_stamp;
  Memory memory = Memory::kKeep;

  bool is_status_first() const { return status_time == StatusTime::kBeforeActions; }
  bool is_status_minor() const { return status_change == StatusChange::kCounters; }

  // Sets this delay as the latest time of that reconcile. It is rounded up, since an earlier
  // reconcile would come twice.
  void requeue_within(std::chrono::microseconds delay) {
    const auto wait =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(delay), std::chrono::milliseconds(0));
    requeue_after = requeue_after ? std::min(*requeue_after, wait) : wait;
  }
  // Does the same for what has to happen at a time, such as the end of a job at its deadline.
  void due_within(std::chrono::microseconds delay) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(delay);
    requeue_within(wait);
    due_after = due_after ? std::min(*due_after, wait) : wait;
  }
};

}  // namespace kube
