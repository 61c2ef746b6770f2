#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"

namespace trainer {

int run_version(OutputFormat format, Console& console) {
  const kube::Json version = kube::Json::object({
      {"version", TRAINER_VERSION},
      {"apis", kube::Json::array({"trainer.kubeflow.org/v1alpha1", "jobset.x-k8s.io/v1alpha2"})},
      {"compiler", __VERSION__},
  });
  print_value(version, "trainer " TRAINER_VERSION "\n", format, console.out);
  return kExitDone;
}

}  // namespace trainer
