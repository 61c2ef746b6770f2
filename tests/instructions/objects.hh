// The fixed inputs: objects of one running TrainJob with four pods, as an API server sends them.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::instructions {

// The text of objects/NAME.json. Exits where there is none.
std::string object_text(std::string_view name);
kube::Json object(std::string_view name);

// Ends the program with a message: a figure of a run that went wrong would mean nothing.
[[noreturn]] void fail(const std::string& what);

}  // namespace trainer::instructions
