// A user's pod template may say what its pods will not have, and what the API server refuses. Kinds
// whose controllers make pods from the templates of roles warn about it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// Returns the errors for which the API server refuses pods of this template. `pod` is what the
// controller makes of it: names that the controller adds may be there twice. The restart policy is
// the role's.
kube::FieldErrors errors_of_pods(const kube::Json& pod_template, const kube::Json& pod,
                                 const std::string& path);

// Each function below appends warnings to `out`, and none once it has kube::kMaxWarnings. `path` is
// that of the role, such as "spec.pytorchReplicaSpecs[Worker]".

// Pods have the role's restart policy, `of_pods`.
void warn_about_restart_policy(const kube::Json& pod_template, std::string_view of_pods,
                               std::string_view path, std::vector<std::string>& out);
// A command is one word that should be several: no machine has a program of this name.
void warn_about_commands(const kube::Json& pod_template, std::string_view path,
                         std::vector<std::string>& out);
// Variables of the user's containers have another value in `pod`, because the controller sets them.
// The last one counts where a container has several of one name.
void warn_about_replaced_variables(const kube::Json& pod_template, const kube::Json& pod,
                                   std::string_view path, std::vector<std::string>& out);

// A gang waits for `least` pods, and the job has `pods`.
void warn_about_gang_size(std::optional<std::int64_t> least, std::int64_t pods,
                          std::vector<std::string>& out);

}  // namespace trainer
