#include "runtimes/pipeline/reserved_env.hh"

#include <algorithm>

namespace trainer::pipeline {

void refuse_reserved_env(const TrainJob& job, const std::vector<std::string_view>& reserved,
                         std::string_view alternative, kube::FieldErrors& errors) {
  const auto& env = trainer_of(job).env;
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string_view name = env[i].get_string("name");
    if (std::find(reserved.begin(), reserved.end(), name) == reserved.end()) continue;
    errors.push_back(kube::invalid(kube::join_index("spec.trainer.env", i) + ".name", name,
                                   "must not have reserved envs, invalid envs configured: [{}]; {}",
                                   name, alternative));
  }
}

}  // namespace trainer::pipeline
