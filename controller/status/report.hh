// What a training pod reports, checked as the API server would check it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// A report as it will be written.
struct Report {
  kube::Json trainer_status;        // null: the body had none, nothing is to be written
  std::size_t dropped_metrics = 0;  // left out, since the API server would refuse them
};

// From the body `{"trainerStatus": {...}}`; unknown members are ignored. Times come out as the API
// stores them: UTC, whole seconds. Errors: kParse for any other document; kInvalid for values that
// the API refuses, in its own wording, with the TrainJob's name.
kube::Result<Report> read_report(std::string_view body, std::string_view trainjob);

// The path's TrainJob, or nullopt for any path but
// /apis/trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status.
std::optional<kube::ObjectKey> read_report_path(std::string_view path);

}  // namespace trainer
