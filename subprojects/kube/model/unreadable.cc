#include "kube/model/unreadable.hh"

#include <cstddef>
#include <string>

#include "kube/model/visible_text.hh"

namespace kube {
namespace {

constexpr std::size_t kMaxUnreadableMessage = 1'000;

}  // namespace

PlannedEvent unreadable_event(const FieldErrors& errors) {
  return {"Warning", std::string(kUnreadable),
          keep_head("the controller cannot read this object and leaves its children as they are: " +
                        to_string(errors) + "; correct or recreate it",
                    kMaxUnreadableMessage)};
}

}  // namespace kube
