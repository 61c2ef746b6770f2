// Jobs and runtimes for the pipeline's tests, written as YAML, as users write them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer::test {

// Tests own their inputs, so a bad one throws.
kube::Json yaml(std::string_view text);
kube::Json yaml_file(const std::string& path_in_source_tree);
std::string text_of_file(const std::string& path_in_source_tree);

// Empty objects are left out, since they say nothing (except emptyDir); conform.py compares in the
// same way.
kube::Json without_empty(const kube::Json& value);

// With the CRD's defaults filled in, as the API server stores them. `text` is a whole object.
TrainJob trainjob(const kube::Json& object);
Runtime runtime(const kube::Json& object);

// A TrainJob "j" in namespace "team" for runtime "rt", with `spec` merged over {runtimeRef}.
TrainJob job_with(std::string_view spec);
// A ClusterTrainingRuntime "rt" whose one job `node` trains in container `node`; `spec` is merged
// over that.
Runtime torch_runtime(std::string_view spec = "{}");
// The same with jobs `node` (sshd) and `launcher` (the trainer, waiting for `node` to be ready).
Runtime mpi_runtime(std::string_view spec = "{}");
// One whose jobs are as given; `jobs` is a YAML list of replicatedJobs.
Runtime runtime_with(std::string_view ml_policy, std::string_view jobs);

// With the plugins of production.
PipelineOptions production();
kube::FieldErrors validate_trainjob(const TrainJob& job, const TrainJob* before,
                                    const Runtime& runtime);
// Returns the warnings of a job that prepare() accepts.
std::vector<std::string> warn_trainjob(const TrainJob& job, const Runtime& runtime,
                                       const PipelineOptions& options = production());
std::vector<std::string> warn_runtime(const Runtime& runtime);

// Returns the result of build(); throws its errors.
Built built(const TrainJob& job, const Runtime& runtime,
            const PipelineOptions& options = production());
kube::FieldErrors refused(const TrainJob& job, const Runtime& runtime);

// Parts of a built JobSet. They throw where there is no such part.
const kube::Json& job_in(const Built& result, std::string_view job);
const kube::Json& pod_in(const Built& result, std::string_view job);  // the pod template
const kube::Json& container_in(const Built& result, std::string_view job,
                               std::string_view container = "node");
// "NAME=value", or "NAME<-fieldPath", in order.
std::vector<std::string> env_of(const kube::Json& container);
std::string env_value(const kube::Json& container, std::string_view name);  // "" when absent
std::vector<std::string> strings(const kube::Json::Array& values);
const kube::Json* dependent(const Built& result, std::string_view kind, std::string_view name);

// In order.
std::vector<std::string> paths_of(const kube::FieldErrors& errors);

}  // namespace trainer::test
