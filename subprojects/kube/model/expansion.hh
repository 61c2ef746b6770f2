// References to variables, $(NAME), in words of a command and in values of variables, as the
// kubelet replaces them (k8s.io/kubernetes, third_party/forked/golang/expansion).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kube {

// Reads a text from its beginning, in linear time. The text outlives the reader.
class ExpansionReader {
 public:
  struct Part {
    std::string_view text;  // of a reference: the name of the variable
    bool is_reference = false;
  };

  explicit ExpansionReader(std::string_view text) : rest_(text) {}
  // "$$" is the part "$", and "$(" without an end is a text. nullopt at the end.
  std::optional<Part> next();

 private:
  std::string_view rest_;
  bool has_ends_ = true;  // as far as is known, there is a ")" in the rest
};

// The names in a text, in order.
std::vector<std::string_view> references_in(std::string_view text);

}  // namespace kube
