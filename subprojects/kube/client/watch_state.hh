// A table says what a watch does next: states, inputs and one step function. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "kube/client/task.hh"

namespace kube::watch {

// Nothing is known, or the known state is too old: the collection has to be listed.
struct Listing {
  int failures = 0;       // in a row, for the backoff
  Milliseconds asked{0};  // the pause that the server asks for, at least
  friend bool operator==(const Listing&, const Listing&) = default;
};
// The state as of `version` is known and no stream is open.
struct Resuming {
  std::string version;
  int failures = 0;
  bool is_fresh = false;   // listed, and no event seen since
  bool is_prompt = false;  // right after a list: no pause, since there was one before the list
  Milliseconds asked{0};   // the same as in Listing
  friend bool operator==(const Resuming&, const Resuming&) = default;
};
// A stream is open and everything up to `version` has been seen.
struct Streaming {
  std::string version;
  int failures = 0;  // before this stream; forgotten at its first event
  bool is_fresh = false;
  friend bool operator==(const Streaming&, const Streaming&) = default;
};
// The server does not know the kind (yet): its CustomResourceDefinition may be on its way, so the
// list is tried again, with backoff.
struct Unserved {
  int tries = 1;
  friend bool operator==(const Unserved&, const Unserved&) = default;
};
using State = std::variant<Listing, Resuming, Streaming, Unserved>;

struct Listed {  // a whole list arrived
  std::string version;
};
struct Opened {};  // the stream's header arrived
struct Seen {      // an event or a bookmark
  std::string version;
};
struct Gone {};           // 410, as a status or as an event; also an event too long to be taken
struct Closed {           // the stream ended in order, or became silent
  bool is_brief = false;  // within a second
};
struct Failed {
  std::optional<Milliseconds> retry_after;
  bool is_brief =
      true;  // false after a stream of some length: for example, a proxy cuts quiet ones
};
struct NotServed {};  // 404
using Input = std::variant<Listed, Opened, Seen, Gone, Closed, Failed, NotServed>;

// Only Seen stays in Streaming: with any other input the stream is gone.
State step(State state, const Input& input);

// Returns how long to wait before acting on a state, without jitter: 0.5 s doubled with every
// failure, or with every answer that the kind is not served, up to 12 s (30 s if it is not served);
// no less than least_pause().
Milliseconds pause_before(const State& state);

// Returns the part that no jitter may shorten: the time that the server asked for, up to five
// minutes.
Milliseconds least_pause(const State& state);

}  // namespace kube::watch
