// Caches keep the children of MPIJobs in this form.
#pragma once

#include <cstddef>

#include "controller/kinds/common/collections.hh"

namespace trainer::mpijob {

// No child has a longer text in a working job. Anyone who may write objects can give them our
// label, and an owner reference to a job that does not exist.
inline constexpr std::size_t kMaxChildText = 32UL * 1024;

// Keeps what plans read of launchers' Jobs, Services, ConfigMaps and Secrets (view_of_child()), and
// of all other objects their identity and owner alone. The text is "" if it would be longer than
// kMaxChildText.
StoredCache::Transform child_transform(const kube::Resource& resource);

}  // namespace trainer::mpijob
