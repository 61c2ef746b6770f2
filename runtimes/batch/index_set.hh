// A Job's status writes completion indexes as "0,2-4,6,7". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainer::batch {

// This is a set of indexes, kept as intervals: its size does not depend on how many indexes it has.
class IndexSet {
 public:
  // Indexes from `limit` on are left out, and so is text that is no interval.
  static IndexSet parse(std::string_view text, std::int32_t limit);

  void add(std::int32_t first, std::int32_t last);
  void add(std::int32_t index) { add(index, index); }
  void add(const IndexSet& other);

  bool has(std::int32_t index) const;
  std::int32_t total() const;
  // Returns how many indexes both sets have.
  std::int32_t shared_with(const IndexSet& other) const;
  // Returns at most `count` indexes below `limit` that are not in the set, in order.
  std::vector<std::int32_t> first_missing(std::size_t count, std::int32_t limit) const;
  std::string to_string() const;
  bool empty() const { return intervals_.empty(); }

 private:
  std::map<std::int32_t, std::int32_t> intervals_;  // first -> last; none touches another
};

}  // namespace trainer::batch
