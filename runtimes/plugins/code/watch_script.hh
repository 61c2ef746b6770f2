// The command of a job whose code may be edited is a child of this script. Pure.
#pragma once

#include <string_view>

namespace trainer::pipeline {

// It lies in the working directory. `round` has the number of the code: the script begins the
// command again when it changes. While `hold` exists, the command does not begin.
inline constexpr std::string_view kWatchDirectory = ".trainer-watch";
// The command and all its processes have this variable, by which they are found: the number.
inline constexpr std::string_view kRoundVariable = "TRAINER_CODE_ROUND";

// Its words are the working directory and the command. It ends with the command if that ends well.
// Otherwise it waits half an hour for other code, and then ends with the command's exit code.
std::string_view watch_script();

}  // namespace trainer::pipeline
