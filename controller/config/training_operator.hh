// V1 jobs in the configuration: the block `trainingOperator` of the file, and the flags of
// upstream's manager.
#pragma once

#include "controller/config/configuration.hh"
#include "controller/config/strict_reader.hh"

namespace trainer {

// Where upstream's manager looks for a template of init containers; it may be missing.
inline constexpr const char* kUsualInitTemplate = "/etc/config/initContainer.yaml";

void read_training_operator(StrictReader& reader, Configuration::TrainingOperator& config);

// The defaults of upstream's manager, for TrainingOperatorFlags::is_alone.
void set_training_operator_defaults(Configuration& configuration);

// The flags win over the file. Errors name the flag.
kube::Result<void> use_training_operator_flags(const TrainingOperatorFlags& flags,
                                               Configuration& configuration);

}  // namespace trainer
