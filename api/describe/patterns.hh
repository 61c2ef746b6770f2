// The regular expressions of the schemas, and text forms of CEL rules, are C++ predicates here, for
// use without an API server.
#pragma once

#include <string_view>

namespace trainer::wire {

// This is a `pattern` of a schema, and the predicate of its matches.
struct Pattern {
  std::string_view regex;
  bool (*matches)(std::string_view text);
};

bool is_quantity(std::string_view text);
bool is_condition_reason(std::string_view text);
bool is_condition_type(std::string_view text);
// '^[a-z]([-a-z0-9]*[a-z0-9])?$'
bool is_dns_label(std::string_view text);
// '^[A-Za-z][A-Za-z0-9+.-]*://.+$'
bool is_uri(std::string_view text);

// This is the pattern of resource.Quantity, in the types of Kubernetes.
inline constexpr Pattern kQuantity{
    R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|)"
    R"(([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)",
    is_quantity};
inline constexpr Pattern kConditionReason{"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                                          is_condition_reason};
inline constexpr Pattern kConditionType{
    R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?)"
    R"((([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$)",
    is_condition_type};

}  // namespace trainer::wire
