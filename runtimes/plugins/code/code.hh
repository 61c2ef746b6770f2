// These annotations give a job files and a working directory. They are extensions.
#pragma once

#include <string_view>

namespace trainer::pipeline {

// Names of ConfigMaps, with commas between them. Their `binaryData` are parts of one compressed
// tar, whose keys sort in the order of the parts. An init container unpacks it into the working
// directory of the training containers.
inline constexpr std::string_view kCodeKey = "trainer.kubeflow.org/code";
// The working directory of the training containers: an absolute path.
inline constexpr std::string_view kWorkingDirKey = "trainer.kubeflow.org/working-dir";

// "true": other code may replace the code while the pods run, and the command then begins again in
// them (watch_script.hh).
inline constexpr std::string_view kCodeWatchKey = "trainer.kubeflow.org/code-watch";

inline constexpr std::string_view kDefaultCodeDirectory = "/workspace/code";
inline constexpr std::size_t kMaxCodeParts = 20;

}  // namespace trainer::pipeline
