// Arguments and variables of a program that is started.
#pragma once

#include <string>
#include <vector>

namespace kube {

// As exec functions and posix_spawn() want them: ended by a null pointer. They refer to the texts.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace kube
