#include "runtimes/pipeline/journal.hh"

#include <algorithm>

namespace trainer::pipeline {

std::string_view source_at(const std::vector<Explanation>& notes, std::string_view path) {
  const auto note = std::find_if(notes.rbegin(), notes.rend(), [path](const Explanation& one) {
    return one.path.starts_with(path) &&
           (one.path.size() == path.size() || one.path[path.size()] == '.');
  });
  return note == notes.rend() ? std::string_view() : note->source;
}

}  // namespace trainer::pipeline
