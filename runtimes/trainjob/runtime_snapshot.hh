// This is the content of a snapshot of a runtime. All jobs whose snapshots have the same text share
// one. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/named_objects.hh"

namespace trainer {

// Immutable once made, so that thousands of jobs can share one.
struct RuntimeSnapshot : kube::ReadContent {
  std::string text;        // data.runtime of the ConfigMap; "" where it is no runtime
  std::string hash;        // its SHA-256, hex
  bool is_object = false;  // else the text is no runtime, and `runtime` says why
  bool is_own = false;     // read as a text of this controller
  // The text names this runtime as its origin.
  std::string group;
  std::string kind;
  std::string ns;
  std::string name;
  // An error carries upstream's text, without its prefix.
  kube::Result<Runtime> runtime;
};

// The snapshot of a runtime as it is now. Its text is canonical: equal runtimes have equal texts,
// also with different uids, versions and times.
std::shared_ptr<const RuntimeSnapshot> snapshot_of(const kube::Json& runtime);
// Reads a text of a ConfigMap, which any client may have written. At most 512 KiB and 40,000 nodes
// of it are read, and snapshot_of() writes no more. `own_hash` is the one in the job's status, or
// "". A text with this hash is the controller's, and up to 1 MiB of it is read.
std::shared_ptr<const RuntimeSnapshot> snapshot_from(std::string text,
                                                     std::string_view own_hash = {});
// This is a ConfigMap that is not, or no longer, the job's snapshot: only the hash of its text is
// kept. Any client may write a ConfigMap of that name, and parsing YAML can cost much time.
std::shared_ptr<const RuntimeSnapshot> unread_snapshot(std::string_view text);
// Returns whether a job of this status may use a text: it is the one it started with, or none is
// known.
bool is_text_of(const TrainJobStatus& status, std::string_view text);

// Returns the runtime that a job in namespace `ns` asks for by `ref`; it is valid as long as
// `snapshot`. Errors are those of RuntimeSnapshot::runtime; it is also an error if it is the
// snapshot of another runtime.
kube::Result<const Runtime*> runtime_in(const RuntimeSnapshot& snapshot, const RuntimeRef& ref,
                                        std::string_view ns);

// Returns the kind and group that a reference means; absent members have their schema defaults.
std::string_view kind_of(const RuntimeRef& ref);
std::string_view group_of(const RuntimeRef& ref);
bool is_cluster_scoped(const RuntimeRef& ref);

}  // namespace trainer
