#include "runtimes/pipeline/switches.hh"

namespace trainer::pipeline {

std::optional<Setting> find_setting(const Draft& draft, std::string_view key) {
  const auto& own = draft.job.metadata.annotations;
  if (const auto found = own.find(key); found != own.end())
    return Setting{found->second, kube::join_key("metadata.annotations", key)};
  const auto& of_runtime = draft.runtime.metadata.annotations;
  if (const auto found = of_runtime.find(key); found != of_runtime.end())
    return Setting{found->second, "spec.runtimeRef"};
  return std::nullopt;
}

bool is_switched_on(const Draft& draft, std::string_view key, bool otherwise) {
  const auto setting = find_setting(draft, key);
  return setting ? setting->value == "true" : otherwise;
}

void check_switch(const Draft& draft, std::string_view key, kube::FieldErrors& errors) {
  const auto setting = find_setting(draft, key);
  if (!setting || setting->value == "true" || setting->value == "false") return;
  errors.push_back(kube::invalid(setting->path, setting->value,
                                 "annotation {} is \"true\" or \"false\", or left out", key));
}

}  // namespace trainer::pipeline
