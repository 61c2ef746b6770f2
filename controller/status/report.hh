// A training pod sends a report, which is checked by the API server's rules. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// This is a report in the form in which it will be written.
struct Report {
  kube::Json trainer_status;        // null: the body had none, nothing is to be written
  std::size_t dropped_metrics = 0;  // left out, since the API server would refuse them
};

// Reads the body `{"trainerStatus": {...}}`; unknown members are ignored. Times get the form in
// which the API stores them: UTC, whole seconds. Errors: kParse for any other document; kInvalid
// for values that the API refuses, in its own wording, with the TrainJob's name.
kube::Result<Report> read_report(std::string_view body, std::string_view trainjob);

// Returns the path's TrainJob, or nullopt for any path except
// /apis/trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/LAST.
std::optional<kube::ObjectKey> read_report_path(std::string_view path, std::string_view last);

}  // namespace trainer
