// The journal is the storage of local mode, like etcd is that of a cluster: each change is in its
// file before the request is answered.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/meta.hh"
#include "kube/server/object_store.hh"
#include "local/node/owned.hh"
#include "local/server/reserve.hh"

namespace trainer {

// A change could not be stored. The message is a whole sentence.
struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr const char* kSetAside = "unreadable";

// The journal is a SQLite database: `objects` has the text of each object, `meta` the version of
// the last change. A commit reaches the operating system before write() returns, so it survives the
// end of this process by any signal; after a power failure the last commits may be missing, each as
// a whole. A change that is no deletion is committed only if the disk has room for all that it adds
// to the file, and for what deletions need after it. So deletions do not depend on the room of the
// disk. Concurrency: one thread at a time.
class Journal {
 public:
  // Opens the file of the folder, or makes it; the folder outlives the Journal. Errors (kInvalid)
  // are a sentence with its name: no database, one that another user could have written, one of a
  // newer version of this program, no room.
  static kube::Result<std::unique_ptr<Journal>> open(const node::OwnedDirectory& folder,
                                                     const std::string& name = "state.db");
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns the resourceVersion of the last change; 1 if there was none.
  std::int64_t version() const;
  // Puts all objects of these kinds back into the store. Others stay in the file: a version of this
  // program that serves them finds them there. The text of an object that cannot be read goes into
  // a file of its own in the folder kSetAside beside the database, and is no object any more; the
  // result has a sentence for each. If its text cannot be moved, it stays in the database, which
  // the sentence says. Errors (kInvalid): the database cannot be read.
  kube::Result<std::vector<std::string>> restore(kube::server::ObjectStore& store,
                                                 const std::vector<kube::Resource>& resources);
  // Throws StorageError if the change could not be stored: then nothing of it is in the file, and a
  // later one may succeed. On a full disk only changes of deletions are stored.
  void write(const kube::server::Change& change);
  // Allocates the reserve and the log, once the writes of a start are on the disk.
  void fill_reserve();

 private:
  struct Database;
  struct Row;
  static kube::Result<void> check_files(const node::OwnedDirectory& folder,
                                        const std::string& name);
  kube::Result<std::string> set_aside(const Row& row);
  Journal(std::unique_ptr<Database> database, const node::OwnedDirectory& folder);
  bool try_to_write(const kube::server::Change& change);
  bool has_room_for(std::int64_t pages);

  std::unique_ptr<Database> database_;
  const Reserve reserve_;
  bool has_reserve_ = true;  // false: a deletion has used it, or there was no room for it
  // The number of pages by which the database can grow without room on the disk.
  std::int64_t spare_pages_ = 0;
};

}  // namespace trainer
