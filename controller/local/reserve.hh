// Room on the disk for what has to work also where it is full: deletes, and the next start.
#pragma once

#include "controller/node/owned.hh"

namespace trainer {

// A file of the state directory whose blocks are allocated. It may be smaller where there was less
// room. Concurrency: one thread; another process may give it back, too.
class Reserve {
 public:
  // `folder` outlives it.
  explicit Reserve(const node::OwnedDirectory& folder) : folder_(folder) {}
  // Allocates it again, as far as there is room. False: it is smaller than it should be.
  bool fill() const;
  // False: there was nothing to give back.
  bool give_back() const;
  // Gives it back where the disk has no room for the files of a start.
  void make_room_for_start() const;

 private:
  const node::OwnedDirectory& folder_;
};

}  // namespace trainer
