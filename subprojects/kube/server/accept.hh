// The Accept header is read as far as the API uses it. Pure.
#pragma once

#include <string_view>

namespace kube::server {

// Returns whether the first form that can be answered is this one: a form of JSON with the
// parameters as=AS, g=GROUP and v=VERSION. Weights (`q`) are not compared: clients of the API write
// the best first.
bool wants_form(std::string_view accept, std::string_view as, std::string_view group,
                std::string_view version);

}  // namespace kube::server
