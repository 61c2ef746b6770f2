// The storage of local mode, as etcd is a cluster's: each change is in its file before the request
// is answered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/meta.hh"
#include "kube/server/object_store.hh"

namespace trainer {

// A change could not be stored. The message is a whole sentence.
struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A SQLite database: `objects` has the text of each object, `meta` the version of the last change.
// A commit reaches the operating system before write() returns, so it survives the end of this
// process by any signal; after a power failure the last commits may be missing, each as a whole.
// Concurrency: one thread at a time.
class Journal {
 public:
  // Opens the file, or makes it. Errors (kInvalid) are a sentence with its name: no database, one
  // of a newer version of this program, no space.
  static kube::Result<std::unique_ptr<Journal>> open(const std::filesystem::path& file);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The resourceVersion of the last change; 1 where there was none.
  std::int64_t version() const;
  // Puts all objects of these kinds back into the store. Others stay in the file: a version of this
  // program that serves them finds them there. Errors (kInvalid): an object that cannot be read.
  kube::Result<void> restore(kube::server::ObjectStore& store,
                             const std::vector<kube::Resource>& resources);
  // Throws StorageError where the change could not be stored: then nothing of it is in the file,
  // and a later one may succeed.
  void write(const kube::server::Change& change);

 private:
  struct Database;
  explicit Journal(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace trainer
