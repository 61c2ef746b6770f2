// Tests without a cluster replay recorded cases (tests/conformance). These functions compare
// objects of plans with those of the record, as tests/conformance/conform.py does.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::test {

std::string read_file(const std::string& path);
// Reads the text of a case. PyYAML, for which cases are written, takes a plain `n` or `y` for a
// string, and Kubernetes takes it for a boolean: it is quoted here.
std::string read_case(const std::string& path);

// Returns the form of the record: no uids, no times, no noise.
kube::Json cleaned(const kube::Json& value, std::string_view key = {});

// Removes what the API server fills into pods and Services; tests/conformance/answers.py leaves the
// same out.
kube::Json without_defaults(const kube::Json& value);

// Returns the members that a step compares: "all", or a list of names.
kube::Json projected(const kube::Json& object, const kube::Json& members);

// Returns the first path at which the two differ, or "". A recorded text in angle brackets is of a
// value that is not compared.
std::string difference(const kube::Json& own, const kube::Json& recorded, const std::string& path);

}  // namespace trainer::test
