// core/v1 Events with first and last timestamps and counts.
#pragma once

#include <memory>
#include <string>

#include "kube/client/api_client.hh"

namespace kube {

struct ObjectReference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
};

struct Event {
  ObjectReference regarding;
  std::string type = "Normal";  // or "Warning"
  std::string reason;           // CamelCase
  std::string message;          // cut to 1,024 bytes at a character's end
  bool is_terminal = false;     // never dropped under load
  std::string component;        // its source; "": the recorder's
};

// Sends events in the background, behind everything else: one request at a time, equal ones
// (object, type, reason, message) within ten minutes counted up by a patch instead of written
// again; when more than 1,000 wait, the oldest that are not terminal are dropped and counted.
// Concurrency: the io_context thread. A write that fails is retried while the process lives
// (terminal) or dropped after three tries; one that is refused for good (the namespace is gone,
// forbidden, invalid) is dropped and counted at once. Lives in the object's namespace, in "default"
// for objects without one.
class EventRecorder {
 public:
  EventRecorder(ApiClient& client, std::string component);

  void record(Event event);
  // The sender; run it in a task group. Ends when cancelled.
  Task<void> run();
  // Waits until everything recorded so far has been sent, or the deadline is over.
  Task<void> drain(Milliseconds deadline);
  std::size_t pending() const;
  std::size_t dropped() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kube
