// Some objects cannot be read: they were stored while their CRD allowed more, or by another
// version. Pure.
#pragma once

#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/plan.hh"

namespace kube {

inline constexpr std::string_view kUnreadable = "Unreadable";  // the reason of the event

// This event reports any object that cannot be read, with a text of bounded length. The object's
// children stay as they are.
PlannedEvent unreadable_event(const FieldErrors& errors);

}  // namespace kube
