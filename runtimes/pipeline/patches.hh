// This file has the rules of runtimePatches: what they may name, how they merge, where they
// contradict each other (Kubeflow Trainer, pkg/runtime/core/trainingruntime.go).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Fills draft.labels and draft.annotations: the runtime's template, then each patch in list order.
// The job's own metadata never reaches the JobSet (Kueue would admit the JobSet again).
void merge_metadata(Draft& draft);

// Fills draft.spec: the runtime's template with each patch merged strategically, in list order, and
// with the jobs in the runtime's order. Returns false, with the reason in draft.errors, if there is
// no usable template or a patch does not merge.
bool merge_template(Draft& draft);

// Checks the rules about patches (Kubeflow Trainer, pkg/runtime/framework/plugins/jobset). Names
// are looked up in the unpatched template: once merged, an unknown name would find itself.
kube::FieldErrors check_patches(const TrainJob& job, const Runtime& runtime);

// Returns one sentence for each value that the patches of two managers (runtimePatches[].manager)
// set differently; the later one wins.
std::vector<std::string> find_patch_conflicts(const TrainJob& job);

// Returns "spec.runtimePatches[i]" if the journal names a patch as the source, else nullopt.
std::optional<std::string> path_of_patch(const TrainJob& job, std::string_view source);

}  // namespace trainer::pipeline
