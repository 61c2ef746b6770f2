#include "runtimes/builtin/builtin_runtimes.hh"

#include <stdexcept>
#include <string_view>

#include "kube/model/yaml.hh"

namespace trainer {

// The build makes these from the YAML files.
namespace builtin {
extern const std::string_view kTorchDistributed;
extern const std::string_view kDeepspeedDistributed;
extern const std::string_view kMlxDistributed;
extern const std::string_view kJaxDistributed;
extern const std::string_view kXgboostDistributed;
extern const std::string_view kFluxDistributed;
extern const std::string_view kTorchtuneLlama321b;
extern const std::string_view kTorchtuneLlama323b;
extern const std::string_view kTorchtuneQwen2515b;
extern const std::string_view kTrl;
extern const std::string_view kTorchDistributedWithCache;
}  // namespace builtin

std::vector<kube::Json> builtin_runtimes() {
  using namespace builtin;
  std::vector<kube::Json> all;
  for (const std::string_view text : {
           kTorchDistributed,
           kDeepspeedDistributed,
           kMlxDistributed,
           kJaxDistributed,
           kXgboostDistributed,
           kFluxDistributed,
           kTorchtuneLlama321b,
           kTorchtuneLlama323b,
           kTorchtuneQwen2515b,
           kTrl,
           kTorchDistributedWithCache,
       }) {
    auto object = kube::parse_yaml(text);
    if (!object)
      throw std::logic_error("a built-in runtime of this program is no YAML: " +
                             object.error().message);
    all.push_back(std::move(*object));
  }
  return all;
}

}  // namespace trainer
