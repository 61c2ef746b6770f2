#include "runtimes/lifecycle/ttl.hh"

namespace trainer {

std::optional<kube::Action> expire(kube::Plan& plan, const kube::Resource& resource,
                                   const kube::ObjectMeta& meta, kube::Time expiry,
                                   kube::Time now) {
  if (now < expiry) {
    plan.due_within(expiry - now);
    return std::nullopt;
  }
  kube::Action action;
  action.verb = kube::Action::Verb::kDelete;
  action.resource = resource;
  action.key = meta.key();
  action.uid = meta.uid;
  action.propagation = "Foreground";
  return action;
}

}  // namespace trainer
