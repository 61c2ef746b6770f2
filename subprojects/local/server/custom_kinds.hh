// CustomResourceDefinitions are created and change while the server runs, and so do their kinds.
#pragma once

#include <cstddef>
#include <vector>

#include "kube/manager/log.hh"
#include "kube/server/object_store.hh"
#include "kube/server/served_kind.hh"

namespace trainer {

// Serves the kind of each CustomResourceDefinition in the store, unless it is one of the program's
// own kinds. The kind of a deleted definition is served until the next start of the daemon, but its
// objects must be erased. Concurrency: the store's thread. It outlives the store's last change.
class CustomKinds {
 public:
  // References to elements of `kinds` stay valid while it grows: there is room for kMaxKinds.
  static constexpr std::size_t kMaxKinds = 300;

  // Begins with the definitions in the store.
  CustomKinds(kube::server::ServedKinds& kinds, kube::server::ObjectStore& store,
              const kube::Log& log);
  CustomKinds(const CustomKinds&) = delete;
  CustomKinds& operator=(const CustomKinds&) = delete;

  // Returns whether there are objects whose definition was deleted.
  bool has_orphans() const;
  // Erases some of them.
  void erase_orphans();

 private:
  void serve(const kube::Json& definition);
  void forget(const kube::Json& definition);
  bool is_own(const kube::Resource& resource) const;

  kube::server::ServedKinds& kinds_;
  kube::server::ObjectStore& store_;
  const kube::Log& log_;
  const std::size_t own_;             // the first so many of `kinds_` are the program's
  std::vector<kube::Resource> gone_;  // the kinds whose definitions were deleted
};

}  // namespace trainer
