// The name grammars of k8s.io/apimachinery/pkg/util/validation, with upstream's messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"

namespace kube {

// Everything that is wrong with a name, each in upstream's words; empty for a valid name. A name
// may be both too long and malformed, and upstream's webhooks report each as an error of its own.
std::vector<std::string> dns1123_label_problems(std::string_view name);
std::vector<std::string> dns1123_subdomain_problems(std::string_view name);
std::vector<std::string> label_value_problems(std::string_view value);
// Of the key of a label, an annotation or a taint: "name" or "example.com/name".
std::vector<std::string> qualified_name_problems(std::string_view key);
// "acme.io/foo": one error per problem, whose value is the part it is about.
FieldErrors domain_prefixed_path_errors(std::string_view path, std::string_view value);

// What is wrong with the keys and values of labels or of a node selector, and with the keys of
// annotations and their size. `path` is that of the whole map: upstream names the key or the value
// that is wrong beside it. A null value counts as "", as Go reads it.
FieldErrors label_errors(std::string_view path, const Json& labels);
FieldErrors annotation_errors(std::string_view path, const Json& annotations);
// Both, of an object's metadata at `path`; appends to `errors`.
void check_labels_and_annotations(const Json& metadata, std::string_view path, FieldErrors& errors);

// The same as one text: empty for a valid name, else the problems joined with ", ".
std::string check_dns1123_label(std::string_view name);
std::string check_dns1123_subdomain(std::string_view name);
std::string check_dns1035_label(std::string_view name);
std::string check_label_value(std::string_view value);
std::string check_domain_prefixed_path(std::string_view value);

}  // namespace kube
