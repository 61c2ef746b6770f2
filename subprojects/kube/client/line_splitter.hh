// Lines are cut from pieces that end anywhere. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kube {

// Guarantees: passes on each line whole and once, without copying those that are in one piece;
// holds at most one unfinished line; frees the memory of a long one.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Calls `on_line` for every line that `piece` completes, without empty ones. Returns false, for
  // good, once a line is longer than the limit. `on_line` returns false to stop early.
  template <class F>
  bool feed(std::string_view piece, F&& on_line) {
    while (!piece.empty()) {
      const auto end = piece.find('\n');
      if (rest_.size() + std::min(end, piece.size()) > max_line_bytes_) return false;
      if (end == std::string_view::npos) {
        rest_.append(piece);
        return true;
      }
      if (!hand_out(piece.substr(0, end), on_line)) return true;
      piece.remove_prefix(end + 1);
    }
    return true;
  }
  // Returns true while the last line has no end yet.
  bool is_within_line() const { return !rest_.empty(); }

 private:
  static constexpr std::size_t kKeptCapacity = 32U << 10;

  template <class F>
  bool hand_out(std::string_view part, F& on_line) {
    if (rest_.empty()) return part.empty() || on_line(part);
    rest_.append(part);
    const bool goes_on = on_line(std::string_view(rest_));
    rest_.clear();
    if (rest_.capacity() > kKeptCapacity) rest_.shrink_to_fit();
    return goes_on;
  }

  std::size_t max_line_bytes_;
  std::string rest_;
};

}  // namespace kube
