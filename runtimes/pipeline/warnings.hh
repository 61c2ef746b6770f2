// These warnings are about settings that are valid, but cause trouble with the SDK, Kueue or gangs.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Returns all warnings about a prepared job, including those of the plugins. Each is one sentence,
// and begins with a path if there is one.
std::vector<std::string> warnings_of(const Draft& draft);

// Plugins call it if their framework starts one process for each node, whatever the job's
// numProcPerNode.
void warn_about_one_process(const Draft& draft, std::vector<std::string>& warnings);

// The SDK counts devices from a container's limits. If it finds none that it knows, every read of
// every job fails. Returns true for limits that are harmless: none at all, or with a name among
// them that it knows.
bool is_readable_by_sdk(const kube::Json& container);

// Returns whether a PersistentVolumeClaim's volume can be mounted on one machine only.
bool is_for_one_node(const kube::Json& claim);

// Only cluster runtimes are announced as deprecated, like upstream's.
bool is_deprecated(const Runtime& runtime);
// Returns the text behind "... is deprecated and will be removed in", the same for jobs and
// runtimes.
std::string deprecation_notice();

}  // namespace trainer::pipeline
