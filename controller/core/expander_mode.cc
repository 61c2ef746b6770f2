#include "controller/core/expander_mode.hh"

namespace trainer {

ExpanderMode Expansion::mode() const {
  if (mode_ != ExpanderMode::kAuto) return mode_;
  return is_upstream_present_ ? ExpanderMode::kShare : ExpanderMode::kOwn;
}

bool Expansion::expands(const std::optional<std::string>& managed_by) const {
  if (mode() == ExpanderMode::kOff) return false;
  if (managed_by == kOurExpander) return true;
  return mode() == ExpanderMode::kOwn && (!managed_by || managed_by == kUpstreamExpander);
}

std::string_view Expansion::stamp() const {
  return mode() == ExpanderMode::kShare ? kOurExpander : std::string_view();
}

}  // namespace trainer
