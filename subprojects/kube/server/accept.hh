// The Accept header, as far as the API uses it. Pure.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace kube::server {

struct MediaType {
  std::string_view type;  // "application/json"
  std::vector<std::pair<std::string_view, std::string_view>> parameters;

  // Whether JSON answers it.
  bool is_json() const {
    return type == "application/json" || type == "application/*" || type == "*/*";
  }
  // "" where there is none.
  std::string_view parameter(std::string_view name) const;
};

// In the order in which the client wants them; it refers to the text. Weights (`q`) are not
// compared: clients of the API write the best first.
std::vector<MediaType> media_types(std::string_view accept);

}  // namespace kube::server
