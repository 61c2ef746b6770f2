// The recorder writes core/v1 Events with first and last timestamps and counts.
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
  std::string type = "Normal";  // "Normal" or "Warning"
  std::string reason;           // CamelCase
  std::string message;          // cut to 1,024 bytes at a character's end
  bool is_terminal = false;     // the event says how the object has ended: never dropped under load
  std::string component;        // its source; "": the recorder's
};

// Sends events in the background, one request at a time. An event that is equal to one of the last
// ten minutes (object, type, reason, message) raises the count of that one by a patch. If more than
// 1,000 wait, the oldest that are not terminal are dropped and counted. A failed write is retried:
// for a terminal event while the process lives, for others three times. A write that is refused for
// good (the namespace is gone, forbidden, invalid) is dropped and counted at once. An Event is in
// its object's namespace, or in "default" for an object without one. Concurrency: the io_context
// thread.
class EventRecorder {
 public:
  EventRecorder(ApiClient& client, std::string component);

  void record(Event event);
  // Sends the events; run it in a task group. It ends when it is cancelled.
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
