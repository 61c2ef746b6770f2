#include "runtimes/lifecycle/processes.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/saturating.hh"

namespace trainer {
namespace {

// A saturated number only says that it is large.
constexpr std::int64_t kUnknownMany = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::int32_t process_count(std::int64_t number) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, 1, kMaxProcesses));
}

std::int32_t process_count(std::int64_t nodes, std::int64_t of_node) {
  // Two numbers below zero must not be multiplied: their product is above zero.
  return process_count(
      kube::saturating_multiply<std::int64_t>(process_count(nodes), process_count(of_node)));
}

std::string refusal_of_processes(std::int64_t nodes, std::int64_t of_node) {
  if (of_node < 1 || of_node > kMaxProcessesOfNode)
    return fmt::format("a node runs 1 to {} processes, and not {}: ask for a number in between",
                       kMaxProcessesOfNode,
                       of_node == kUnknownMany ? std::string("more") : std::to_string(of_node));
  const std::int64_t all = kube::saturating_multiply<std::int64_t>(process_count(nodes), of_node);
  if (all <= kMaxProcesses) return {};
  return fmt::format(
      "{} nodes with {} processes each are {} processes, and a training has {} at most: ask for "
      "fewer",
      nodes, of_node, all, kMaxProcesses);
}

}  // namespace trainer
