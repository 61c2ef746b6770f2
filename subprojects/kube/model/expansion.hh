// Words of a command and values of variables may refer to variables as $(NAME). They are replaced
// as in the kubelet (k8s.io/kubernetes, third_party/forked/golang/expansion).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kube {

// Reads a text from its beginning, in linear time. The text outlives the reader.
class ExpansionReader {
 public:
  struct Part {
    std::string_view text;  // the text; for a reference the name of the variable
    bool is_reference = false;
  };

  explicit ExpansionReader(std::string_view text) : rest_(text) {}
  // Returns the next part; nullopt at the end. "$$" is the part "$", and "$(" without an end is a
  // text.
  std::optional<Part> next();

 private:
  std::string_view rest_;
  bool has_ends_ = true;  // there may be a ")" in the rest
};

// Returns the names in a text, in order.
std::vector<std::string_view> references_in(std::string_view text);

}  // namespace kube
