#include <algorithm>
#include <array>

#include "kube/model/text.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

// Each kind is in the file of its name, and in that file's namespace.
namespace pytorch {
extern const Framework kPyTorchJob;
}
namespace tensorflow {
extern const Framework kTFJob;
}
namespace xgboost {
extern const Framework kXGBoostJob;
}
namespace paddle {
extern const Framework kPaddleJob;
}
namespace jax {
extern const Framework kJAXJob;
}
namespace mpi {
extern const Framework kMPIJob;
}

std::span<const Framework* const> frameworks() {
  static const std::array kAll{&pytorch::kPyTorchJob, &tensorflow::kTFJob, &xgboost::kXGBoostJob,
                               &paddle::kPaddleJob,   &jax::kJAXJob,       &mpi::kMPIJob};
  return kAll;
}

const Framework* find_framework(std::string_view kind) {
  for (const Framework* framework : frameworks())
    if (framework->singular == kube::to_lower(kind)) return framework;
  return nullptr;
}

tl::expected<std::vector<const Framework*>, std::string> enabled_frameworks(
    const std::vector<std::string>& kinds) {
  std::vector<const Framework*> found;
  std::string known;
  for (const Framework* framework : frameworks()) {
    known += (known.empty() ? "" : ", ") + framework->resource.kind;
    if (kinds.empty()) found.push_back(framework);
  }
  for (const std::string& kind : kinds) {
    const Framework* framework = find_framework(kind);
    if (framework == nullptr)
      return tl::unexpected("unknown kind \"" + kind + "\": the kinds are " + known);
    if (std::find(found.begin(), found.end(), framework) == found.end()) found.push_back(framework);
  }
  return found;
}

}  // namespace trainer::v1
