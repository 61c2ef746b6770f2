// Stores whose changes wake nothing.
#pragma once

#include "controller/core/stores.hh"

namespace trainer::test {

// Every listener is there and does nothing; a test sets those that it looks at.
inline Stores::Listeners deaf_listeners() {
  Stores::Listeners all;
  all.trainjob = [](const kube::ObjectKey&, Stores::Debounce) {};
  all.jobset = all.trainjob;
  all.trainjob_gone = [](const std::string&) {};
  all.jobset_gone = [](const StoredObject&) {};
  all.leader = [](const kube::ObjectKey&) {};
  all.runtimes_changed = [] {};
  return all;
}

}  // namespace trainer::test
