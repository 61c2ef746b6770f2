// Warnings about what is valid, but causes trouble with the SDK, Kueue or gangs.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// All warnings about a prepared job, those of the plugins included. Each is one sentence, and
// begins with a path where there is one.
std::vector<std::string> warnings_of(const Draft& draft);

// For plugins whose framework starts one process a node, whatever the job's numProcPerNode.
void warn_about_one_process(const Draft& draft, std::vector<std::string>& warnings);

// The SDK counts devices from a container's limits, and where it finds none that it knows, every
// read of every job fails. True for limits that are harmless: none at all, or with
// a name among them that it knows.
bool is_readable_by_sdk(const kube::Json& container);

// Whether a PersistentVolumeClaim's volume can be mounted on one machine only.
bool is_for_one_node(const kube::Json& claim);

// Only cluster runtimes are announced as deprecated, as upstream does.
bool is_deprecated(const Runtime& runtime);
// What follows "... is deprecated and will be removed in": the same for jobs and runtimes.
std::string deprecation_notice();

}  // namespace trainer::pipeline
