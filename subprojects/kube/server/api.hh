// The Kubernetes API on an ObjectStore: what a request means. Pure: time and names come from the
// caller, streams and admission are the caller's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "kube/server/object_store.hh"
#include "kube/server/request.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Labels and fields that a list or watch is limited to.
class Selector;

// A watch that the caller serves: first `initial`, then each later Change of the collection that
// `line` makes a line of (empty: not shown), until `timeout`, with bookmarks where asked for.
struct Watch {
  const ServedKind* kind = nullptr;
  std::vector<std::string> initial;  // whole lines, with their line feeds
  std::function<std::string(const Change& change)> line;
  std::function<std::string(std::int64_t version)> bookmark;  // empty: none are wanted
  std::chrono::seconds timeout{1800};
  std::string content_type = "application/json";
};

// GET .../pods/NAME/log
struct LogQuery {
  ObjectKey pod;
  std::string container;  // empty: the only one, or the one that the default-container annotation names
  bool is_followed = false;
  bool has_timestamps = false;
  bool is_previous = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<std::int64_t> limit_bytes;
  std::optional<Time> since;
};

// A write that waits for admission. `object` is what would be stored (null for a delete).
struct PendingWrite {
  const ServedKind* kind = nullptr;
  ObjectKey key;
  std::string operation;    // CREATE, UPDATE or DELETE
  std::string subresource;  // "", "status" or "scale"
  Object before;            // nullptr for a create
  Json object;
  bool is_dry_run = false;
  Json options;         // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions as sent
  std::string manager;  // of fields
  std::vector<std::string> warnings;
  Request request;  // to begin again where the object has changed meanwhile
  Response preview; // of a delete: nothing
};

using Outcome = std::variant<Response, Watch, LogQuery, PendingWrite>;

class Api {
 public:
  struct Environment {
    std::function<Time()> now;
    std::function<std::string()> new_uid;          // a UUID
    std::function<std::string()> new_name_suffix;  // five letters and digits for generateName
  };
  // All outlive the Api.
  Api(const ServedKinds& kinds, ObjectStore& store, Environment environment);

  // Answers a request, or says what the caller has to do for it.
  Outcome begin(Request request);
  // Stores what admission has let through, as admission has changed it. Where the stored object has
  // changed since begin(), a patch without resourceVersion begins again (the Outcome is a
  // PendingWrite), and any other write is answered 409.
  Outcome finish(PendingWrite write);
  // begin() and finish() without admission.
  Outcome handle(Request request);

  const ServedKind* find_kind(std::string_view group, std::string_view version,
                              std::string_view plural) const;
  ObjectStore& store() { return store_; }

 private:
  const ServedKinds& kinds_;
  ObjectStore& store_;
  Environment environment_;
};

}  // namespace kube::server
