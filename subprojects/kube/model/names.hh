// Names follow the grammars of k8s.io/apimachinery/pkg/util/validation, with upstream's messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"

namespace kube {

// Returns everything that is wrong with a name, each in upstream's words; empty for a valid name. A
// name may be both too long and malformed, and upstream's webhooks report each as an error of its
// own.
std::vector<std::string> dns1123_label_problems(std::string_view name);
std::vector<std::string> dns1123_subdomain_problems(std::string_view name);
std::vector<std::string> label_value_problems(std::string_view value);
// Returns the problems of the key of a label, an annotation or a taint: "name" or
// "example.com/name".
std::vector<std::string> qualified_name_problems(std::string_view key);
// Checks a path like "acme.io/foo". Each problem is one error, whose value is the part that it is
// about.
FieldErrors domain_prefixed_path_errors(std::string_view path, std::string_view value);

// Returns the errors in the keys and values of labels or of a node selector, and in the keys of
// annotations and their size. `path` is that of the whole map: upstream names the wrong key or
// value beside it. A null value counts as "", since Go reads it so.
FieldErrors label_errors(std::string_view path, const Json& labels);
FieldErrors annotation_errors(std::string_view path, const Json& annotations);
// Checks both in an object's metadata at `path`; appends to `errors`.
void check_labels_and_annotations(const Json& metadata, std::string_view path, FieldErrors& errors);

// Returns the same as one text: empty for a valid name, else the problems joined with ", ".
std::string check_dns1123_label(std::string_view name);
std::string check_dns1123_subdomain(std::string_view name);
std::string check_dns1035_label(std::string_view name);
std::string check_label_value(std::string_view value);
std::string check_domain_prefixed_path(std::string_view value);

}  // namespace kube
