// Columns and cells of the Tables of built-in kinds are those of kube-apiserver
// (pkg/printers/internalversion/printers.go, v1.34). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace trainer::local {

// Reads "Name,Age,+Node": one column each, "+" for one that only -o wide shows.
std::vector<kube::server::Column> columns_of(std::string_view names);

kube::Json name_of(const kube::Json& object);
// Returns the time since the object's creation.
kube::Json age_of(const kube::Json& object, kube::Time now);

// Returns "a=b,c=d", or "<none>".
std::string print_labels(const kube::Json& labels);
// Returns the member's text, or `otherwise` if it is empty.
std::string text_or(const kube::Json& object, std::string_view member, std::string_view otherwise);
// Joins the texts with ", " or another text between them.
std::string join(const std::vector<std::string>& texts, std::string_view separator);

// These return the cells of a row; they are `cells` of a ServedKind.
kube::Json pod_cells(const kube::Json& pod, kube::Time now);
kube::Json job_cells(const kube::Json& job, kube::Time now);
kube::Json service_cells(const kube::Json& service, kube::Time now);
kube::Json node_cells(const kube::Json& node, kube::Time now);
kube::Json event_cells(const kube::Json& event, kube::Time now);

}  // namespace trainer::local
