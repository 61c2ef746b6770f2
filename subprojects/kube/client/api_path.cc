#include "kube/client/api_client.hh"
#include "kube/client/url.hh"

namespace kube {

std::string api_path(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = resource.group.empty() ? "/api/" + percent_encode(resource.version)
                                            : "/apis/" + percent_encode(resource.group) + "/" +
                                                  percent_encode(resource.version);
  // A namespace itself is addressed by its name, as any object without namespace.
  if (resource.namespaced && !key.ns.empty()) path += "/namespaces/" + percent_encode(key.ns);
  path += "/" + percent_encode(resource.plural);
  if (!key.name.empty()) path += "/" + percent_encode(key.name);
  if (!subresource.empty()) path += "/" + percent_encode(subresource);
  return path;
}

}  // namespace kube
