// The origin of values is noted while they are set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtimes/pipeline/pipeline.hh"

namespace trainer::pipeline {

// Collects explanations. Without a list to put them into it is off: callers test is_on() before
// they spend time on a path. If several notes are about one path, the last one says where the value
// comes from.
class Journal {
 public:
  explicit Journal(std::vector<Explanation>* out = nullptr) : out_(out) {}

  bool is_on() const { return out_ != nullptr; }
  void note(std::string path, std::string_view source) {
    if (out_ != nullptr) out_->push_back({std::move(path), std::string(source)});
  }

 private:
  std::vector<Explanation>* out_;
};

// Returns where the value at a path, or below it, comes from; "" means the runtime.
std::string_view source_at(const std::vector<Explanation>& notes, std::string_view path);

}  // namespace trainer::pipeline
