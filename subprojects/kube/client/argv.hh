// A program is started with these arguments and variables.
#pragma once

#include <string>
#include <vector>

namespace kube {

// Returns the form of exec functions and posix_spawn(): ended by a null pointer. The pointers refer
// to the texts.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace kube
