// kube-apiserver refuses these errors of pods and pod templates, beyond their types: names,
// references, enumerated values and amounts (k8s.io/kubernetes, pkg/apis/core/validation). Rules
// that differ between supported versions of Kubernetes are left out. Defaults need not be set.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace kube {

// All functions append to `errors`, some 200 at most; `path` is that of the value. Members of wrong
// types are skipped: the schema refuses them.
void check_pod_spec(const Json& spec, std::string_view path, FieldErrors& errors);
// Checks `{metadata, spec}`, with labels and annotations.
void check_pod_template(const Json& pod_template, std::string_view path, FieldErrors& errors);

// Checks the part of check_pod_spec that says where pods may run: node selector, affinity,
// tolerations, spread, gates.
void check_pod_placement(const Json& spec, std::string_view path, FieldErrors& errors);

// Checks the part of check_pod_spec about names and paths: host names and aliases, classes, files
// of volumes.
void check_pod_names(const Json& spec, std::string_view path, FieldErrors& errors);

// Checks the part of check_pod_spec about unions: sources of variables and volumes, handlers of
// probes and of lifecycle hooks.
void check_pod_unions(const Json& spec, std::string_view path, FieldErrors& errors);

// Returns the problem of a command whose first word has spaces in it, such as "python train.py";
// nullopt for others. The API server accepts such a command, and no container starts.
std::optional<std::string> several_words_in_one(std::string_view program);

// Checks a member that holds one of these words. If it is absent or of another type, nothing is
// checked.
void check_word(const Json& object, std::string_view name, std::string_view path,
                const std::vector<std::string_view>& words, FieldErrors& errors);

}  // namespace kube
