// This is a number or a word (k8s.io/apimachinery/pkg/util/intstr).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainer {

struct IntOrString {
  std::optional<std::int32_t> number;
  std::string word;  // the word, if there is no number
};

}  // namespace trainer
