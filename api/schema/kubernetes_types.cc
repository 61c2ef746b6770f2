#include "api/schema/kubernetes_types.hh"

#include <stdexcept>
#include <string_view>

#include "kube/model/json_text.hh"

namespace trainer {

extern const std::string_view kKubernetesTypes;  // embedded by the build

kube::Json read_kubernetes_types() {
  auto types = kube::parse_json(kKubernetesTypes);
  if (!types) throw std::logic_error("api/schema/kubernetes.json: " + types.error().message);
  return *std::move(types);
}

}  // namespace trainer
