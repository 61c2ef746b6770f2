// The Kubernetes API on an ObjectStore decides what a request means. Pure: the caller supplies time
// and names, and does streams and admission.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "kube/server/discovery.hh"
#include "kube/server/object_store.hh"
#include "kube/server/request.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

class Query;
struct Target;

// The caller serves this watch: first `initial`, then each later Change of the collection for which
// `line` makes a line (empty: not shown), until `timeout`, with bookmarks if the client asked for
// them.
struct Watch {
  const ServedKind* kind = nullptr;
  std::vector<std::string> initial;  // whole lines, with their line feeds
  // Is also called with changes of other collections.
  std::function<std::string(const Change& change)> line;
  std::function<std::string(std::int64_t version)> bookmark;  // empty: none are wanted
  std::chrono::seconds timeout{1800};
  std::string content_type = "application/json";
  bool is_ended = false;  // nothing follows `initial`, whose last line says why
};

// This is GET .../pods/NAME/log.
struct LogQuery {
  ObjectKey pod;
  // Empty: the only container, or the one that the default-container annotation names.
  std::string container;
  bool is_followed = false;
  bool has_timestamps = false;
  bool is_previous = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<std::int64_t> limit_bytes;
  std::optional<Time> since;
};

// This write waits for admission. `object` is what would be stored (null for a delete).
struct PendingWrite {
  const ServedKind* kind = nullptr;
  ObjectKey key;
  std::string operation;    // CREATE, UPDATE or DELETE
  std::string subresource;  // "", "status" or "scale"
  Object before;            // nullptr for a create
  Json object;
  bool is_dry_run = false;
  Json options;  // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions from the request
  std::string manager;  // the field manager
  std::vector<std::string> warnings;
  bool is_conditional = false;      // the client sent a resourceVersion
  bool has_generated_name = false;  // check() has generated it; another one may be tried
  Request request;  // begin() is called again with it if the object has changed meanwhile
};

using Outcome = std::variant<Response, Watch, LogQuery, PendingWrite>;

class Api {
 public:
  struct Environment {
    std::function<Time()> now;
    std::function<std::string()> new_uid;          // makes a UUID
    std::function<std::string()> new_name_suffix;  // makes five letters and digits for generateName
    ServerVersion version = {};
  };
  // All parameters outlive the Api. Makes a collection for each kind.
  Api(const ServedKinds& kinds, ObjectStore& store, Environment environment);

  // Answers a request, or says what the caller has to do for it.
  Outcome begin(Request request);
  // Does what the server does between mutating and validating admission: it sets the system fields
  // (those that no client may set: uid, creationTimestamp, ...), a generated name and the
  // generation, and checks metadata and schema. A Response is the refusal. Idempotent; finish()
  // does it, too.
  std::optional<Response> check(PendingWrite& write) const;
  // Stores a write that admission has allowed, with the changes of admission. If the stored object
  // has changed since begin(), a patch without resourceVersion begins again (the Outcome is a
  // PendingWrite), and any other write is answered 409.
  Outcome finish(PendingWrite write);
  // Does begin() and finish() without admission.
  Outcome handle(Request request);

  const ServedKinds& kinds() const { return kinds_; }
  ObjectStore& store() { return store_; }

 private:
  Outcome read(const Request& request, const Target& target) const;
  Outcome list(const Request& request, const Target& target) const;
  Outcome watch(const Request& request, const Target& target) const;
  Outcome read_log(const Target& target) const;
  Outcome create(Request request, const Target& target) const;
  Outcome update(Request request, const Target& target) const;
  Outcome patch(Request request, const Target& target) const;
  Outcome apply(Request request, const Target& target, Json config) const;
  Outcome begin_delete(Request request, const Target& target) const;
  Outcome delete_collection(const Request& request, const Target& target);
  Response finish_delete(const PendingWrite& write);
  Response store_write(PendingWrite write);
  tl::expected<Json, Response> decode(const Request& request) const;
  tl::expected<Json, Response> delete_options(const Request& request, const Query& query) const;
  // Answers the object or, if the client wants one, its Table.
  Response answer(int status, const ServedKind& kind, const Request& request,
                  const Json& object) const;

  const ServedKinds& kinds_;
  ObjectStore& store_;
  Environment environment_;
};

}  // namespace kube::server
