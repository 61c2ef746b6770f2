#include "api/api.hh"
#include "api/describe/fitter.hh"
#include "api/describe/jobset.hh"
#include "api/describe/trainjob.hh"

namespace trainer {

std::vector<std::string> fit(kube::Condition& condition) {
  wire::Cuts cuts;
  wire::fit(condition, cuts);
  return cuts;
}

std::vector<std::string> fit(JobSetStatus& status) {
  wire::Cuts cuts;
  wire::fit(status, cuts);
  return cuts;
}

std::vector<std::string> fit(TrainJobStatus& status) {
  wire::Cuts cuts;
  wire::fit(status, cuts);
  return cuts;
}

}  // namespace trainer
