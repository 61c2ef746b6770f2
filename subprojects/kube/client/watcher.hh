// A watch lists, then watches, forever: it keeps one sink up to date with one collection.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/client/api_client.hh"

namespace kube {

// A watch writes the objects of its collection into a sink. It is called on the io thread; must not
// block. `object` is one object's JSON text, valid for the call. A (re)list calls begin_list,
// upsert for every item, listed_at, end_list, which makes the listed state visible at once and
// drops the objects that are not in it. A list that fails midway is begun again. For an object that
// cannot be decoded upsert and remove return false, and the watcher reports it as "malformed" and
// goes on.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void begin_list() = 0;
  virtual bool upsert(std::string_view object) = 0;
  // It is called with the resourceVersion of the list.
  virtual void listed_at(std::string_view) {}
  virtual void end_list() = 0;
  virtual bool remove(std::string_view object) = 0;  // `object` is its last state
};

struct WatchOptions {
  std::string ns;              // empty: all namespaces
  std::string label_selector;  // unescaped
  std::string field_selector;
  Milliseconds timeout{290'000};  // asked of the server, in whole seconds, jittered by 10 %
  // A stream that is still open this long after `timeout`, and without an event, is closed.
  Milliseconds idle_margin{5'000};
  // Events that follow an event within this time are read together, so that a busy collection wakes
  // the loop rarely. An event that comes alone is not delayed. Others are, by this much at most,
  // and none while more has arrived than a read takes.
  Milliseconds batch{0};
  // A longer line ends the stream, and the collection is listed again.
  std::size_t max_event_bytes = 16U << 20;
  // It is called with "list", "watch", "gone", "malformed", "unserved", "error" and a sentence; for
  // logs and metrics.
  std::function<void(std::string_view what, std::string_view detail)> on_note;
  // It is called after each list, each opening of a stream and each piece of one; may be empty.
  // While the API server sends bookmarks, it is called once a minute at least.
  std::function<void()> on_sign_of_life;
  WatchOptions() {}
};

// Runs until it is cancelled. If the kind is not served (404), the list is tried again, 0.5 s to 30
// s later. Recovery: a closed stream resumes at the last seen version or bookmark; 410, in any
// form, lists again; other errors back off from 0.5 s to 12 s, jittered, or for longer if the
// server asks for it. The rules are in watch_state.hh.
Task<void> run_watch(ApiClient& client, Resource resource, WatchSink& sink, WatchOptions options);

}  // namespace kube
