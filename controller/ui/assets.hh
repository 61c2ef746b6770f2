// The style and the script of the pages.
#pragma once

#include <string_view>

namespace trainer::ui {

extern const std::string_view kStyle;
extern const std::string_view kScript;

}  // namespace trainer::ui
