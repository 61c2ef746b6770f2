#include "runtimes/fit/amounts.hh"

#include <fmt/format.h>

#include <algorithm>

namespace trainer::fit {

ResourceTable::ResourceTable(const std::vector<std::string>& more)
    : names_{"cpu", "memory", "pods"} {
  for (const std::string& name : more)
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
}

Amounts ResourceTable::read(const kube::ResourceList& amounts) const {
  Amounts read(names_.size(), 0);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto at = amounts.find(names_[i]);
    if (at == amounts.end()) continue;
    kube::Quantity amount = at->second;
    if (i == kCpu) amount *= 1000;
    read[i] = amount.value();
  }
  return read;
}

std::string ResourceTable::print(std::size_t index, std::int64_t amount) const {
  using kube::Quantity;
  if (index == kCpu && amount % 1000 != 0) return fmt::format("{}m", amount);
  if (index == kCpu) return fmt::format("{}", amount / 1000);
  const std::string& name = names_[index];
  const bool is_binary =
      index == kMemory || name == "ephemeral-storage" || name.starts_with("hugepages-");
  return is_binary ? Quantity::of(amount, Quantity::Format::kBinarySI).to_string()
                   : fmt::format("{}", amount);
}

bool is_device(std::string_view resource) {
  return resource.find('/') != resource.npos && !resource.starts_with("kubernetes.io/");
}

std::string count_of_pods(std::int64_t count) {
  return fmt::format("{} pod{}", count, count == 1 ? "" : "s");
}

}  // namespace trainer::fit
