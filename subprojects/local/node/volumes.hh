// The volumes of a pod are directories of this machine.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "local/node/env.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

// These are the directories of volumes.
struct VolumePlaces {
  std::filesystem::path pod;  // the pod's directory
  // This is for persistent volume claims that do not exist: NAMESPACE/NAME below it.
  std::filesystem::path unclaimed;
  std::map<std::string, std::filesystem::path, std::less<>> claims = {};  // by name
};

// This is a file of a volume that holds data of the API.
struct VolumeFile {
  std::string path;  // within the volume
  std::string text;
  mode_t mode = 0644;
  friend bool operator==(const VolumeFile&, const VolumeFile&) = default;
};

// Pure. Returns the directory or file of a volume. Errors: kUnsupported for a kind of volume that
// this machine does not have.
kube::Result<std::string> source_of(const kube::Json& pod, const kube::Json& volume,
                                    const VolumePlaces& places);
bool is_empty_dir(const kube::Json& volume);
// Pure. Returns the files of a configMap, secret, downwardAPI or projected volume; none for others.
// Errors: kNotFound for an object or key that does not exist (yet), kUnsupported; with the volume's
// name.
kube::Result<std::vector<VolumeFile>> files_of(const kube::Json& pod, const kube::Json& volume,
                                               const Sources& sources, const PodFacts& facts);

// Writes the tokens of a pod's projected volumes again. Errors are those of make_volumes().
kube::Result<void> write_tokens(const kube::Json& pod, const Sources& sources,
                                const VolumePlaces& places);

// Makes all volumes of a pod. Errors are those above, and refusals of this machine.
kube::Result<void> make_volumes(const kube::Json& pod, const Sources& sources,
                                const PodFacts& facts, const VolumePlaces& places);

}  // namespace trainer::node
