// Some writes have to work also if the disk is full, and need room there: the next start, and
// deletes that have used up the room that the database keeps for them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "local/node/owned.hh"

namespace trainer {

inline constexpr const char* kReserveFile = "reserve";

// This is a file of the state directory whose blocks are allocated. It may be smaller if there was
// less room. Concurrency: one thread; another process may give a part of it back, too.
class Reserve {
 public:
  // `folder` outlives it.
  explicit Reserve(const node::OwnedDirectory& folder) : folder_(folder) {}
  // Allocates it again, as far as there is room. Returns false if it is smaller than it should be.
  bool fill() const;
  // Gives back all except the room that some starts need.
  void give_back() const;
  // Gives back what one start needs, if the disk has no room for it.
  void make_room_for_start() const;
  // Writes a small file of the folder; if the disk is full, into room that it gives back. Errors
  // are those of OwnedDirectory::replace().
  kube::Result<void> replace(const std::string& name, std::string_view text) const;
  // Returns whether the disk has too little room to fill it.
  bool is_disk_full() const;

 private:
  void give_back_start() const;
  bool has_disk_room_for(std::size_t bytes) const;
  void shrink_to(std::size_t bytes) const;
  const node::OwnedDirectory& folder_;
};

}  // namespace trainer
