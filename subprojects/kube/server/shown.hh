// Clients see a stored object in this form.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// This is a Json in the form that clients see: the stored one if it need not be changed for that,
// else a changed copy.
class Shown {
 public:
  explicit Shown(const Json* stored) : at_(stored) {}
  explicit Shown(Json copy) : copy_(std::make_unique<Json>(std::move(copy))), at_(copy_.get()) {}
  const Json& operator*() const { return *at_; }

 private:
  std::unique_ptr<Json> copy_;
  const Json* at_;
};

// Returns the object in the version of the kind.
Shown shown(const ServedKind& kind, const Json& object);

// Returns the autoscaling/v1 Scale of an object, for a kind that has the subresource.
Json scale_of(const ServedKind& kind, const Json& object);
// Writes the replicas of a Scale into the object. Returns false if a value on their path has no
// members.
bool set_replicas(const ServedKind& kind, Json& object, std::int64_t replicas);

}  // namespace kube::server
