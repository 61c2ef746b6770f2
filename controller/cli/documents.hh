// Kubernetes objects are read and printed on the command line.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/commands.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer {

// Prints YAML documents separated by "---", or one JSON List.
void print_documents(const std::vector<kube::Json>& documents, OutputFormat format,
                     std::ostream& out);

// Prints `text`, or `value` in another format.
void print_value(const kube::Json& value, std::string_view text, OutputFormat format,
                 std::ostream& out);

// Returns whether it is Complete or Failed.
bool is_finished(const kube::Json& trainjob);

// Returns "TrainJob team-a/llama".
std::string title_of(const kube::Json& object);

// Reads the objects of one YAML or JSON file ("-": standard input); the items of Lists become
// objects. Errors name the file, and the number of a document that is not a Kubernetes object.
kube::Result<std::vector<kube::Json>> read_documents(const std::string& file,
                                                     std::istream& standard_input);

}  // namespace trainer
