// A job or a runtime asks for some extensions by annotation, not by a field: typed clients of the
// upstream API drop fields that they do not know, and keep annotations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// By this annotation the pods of a job or of a runtime get a token for the status server.
inline constexpr std::string_view kReportProgressKey = "trainer.kubeflow.org/report-progress";

struct Setting {
  std::string_view value;  // borrowed from the draft's job or runtime
  std::string path;        // the path for errors: "metadata.annotations[KEY]", or "spec.runtimeRef"
};

// Returns the annotation of the job, else that of its runtime (not of the runtime's template).
std::optional<Setting> find_setting(const Draft& draft, std::string_view key);

// Returns the value of "true" or "false"; `otherwise` if it is absent. Any other value counts as
// "false", and check_switch() refuses it.
bool is_switched_on(const Draft& draft, std::string_view key, bool otherwise);
void check_switch(const Draft& draft, std::string_view key, kube::FieldErrors& errors);

}  // namespace trainer::pipeline
