#include "controller/kinds/jobset/jobset_ownership.hh"

#include "runtimes/jobset/names.hh"

namespace trainer {

bool JobSetOwnership::set_upstream_present(bool is_present) {
  const auto before = mode();
  is_upstream_present_ = is_present;
  if (mode() == before) return false;
  for (const auto& handler : handlers_) handler();
  return true;
}

JobSetControllerMode JobSetOwnership::mode() const {
  if (mode_ != JobSetControllerMode::kAuto) return mode_;
  return is_upstream_present_ ? JobSetControllerMode::kShare : JobSetControllerMode::kOwn;
}

bool JobSetOwnership::owns(const std::optional<std::string>& managed_by) const {
  if (mode() == JobSetControllerMode::kOff) return false;
  if (managed_by == kManagedByTrainer) return true;
  return mode() == JobSetControllerMode::kOwn &&
         (!managed_by || managed_by == jobset::kJobSetControllerName);
}

std::string_view JobSetOwnership::managed_by() const {
  return mode() == JobSetControllerMode::kShare ? kManagedByTrainer : std::string_view();
}

}  // namespace trainer
