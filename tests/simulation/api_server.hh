// HTTP in front of the store: what a request means, without time and without faults.
#pragma once

#include <string>
#include <string_view>

#include "kube/client/transport.hh"
#include "tests/simulation/api_store.hh"

namespace trainer::simulation {

// A request's target, taken apart.
struct Target {
  const kube::Resource* resource = nullptr;  // nullptr: not served
  kube::ObjectKey key;                       // no name: the collection
  std::string subresource;
  bool is_watch = false;
  bool is_forced = false;
  std::int64_t version = 0;  // resourceVersion of a watch
  int timeout_seconds = 300;
  std::string label;  // a label that must be there; "" without a selector
};
Target parse_target(const ApiStore& store, std::string_view target);

// Whether a watch or list of this target shows the object.
bool is_selected(const Target& target, const kube::Json& object);

// Carries out one request of the controller's, other than a watch.
Answer handle(ApiStore& store, const kube::HttpRequest& request);

}  // namespace trainer::simulation
