#include <ostream>

#include "controller/cli/commands.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"

namespace trainer {

int run_version(OutputFormat format, Console& console) {
  const kube::Json version = kube::Json::object({
      {"version", TRAINER_VERSION},
      {"apis", kube::Json::array({"trainer.kubeflow.org/v1alpha1", "jobset.x-k8s.io/v1alpha2"})},
      {"compiler", __VERSION__},
  });
  switch (format) {
    case OutputFormat::kJson:
      console.out << kube::print_json_pretty(version) << '\n';
      break;
    case OutputFormat::kYaml:
      console.out << kube::print_yaml(version);
      break;
    case OutputFormat::kText:
      console.out << "trainer " << TRAINER_VERSION << '\n';
      break;
  }
  return kExitDone;
}

}  // namespace trainer
