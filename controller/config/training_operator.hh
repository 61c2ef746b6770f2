// V1 jobs are configured by the block `trainingOperator` of the file, and the flags of upstream's
// manager.
#pragma once

#include "controller/config/configuration.hh"
#include "controller/config/strict_reader.hh"

namespace trainer {

// Upstream's manager reads the template of init containers from this file by default; it may be
// missing.
inline constexpr const char* kDefaultInitTemplate = "/etc/config/initContainer.yaml";

// Reads the members of the block.
void read_training_operator(StrictReader& reader, Configuration::TrainingOperator& config);

// Sets the defaults of upstream's manager, for TrainingOperatorFlags::is_manager.
void set_training_operator_defaults(Configuration& configuration);

// The flags win over the file. Errors name the flag.
kube::Result<void> use_training_operator_flags(const TrainingOperatorFlags& flags,
                                               Configuration& configuration);

}  // namespace trainer
