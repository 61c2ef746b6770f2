#include "controller/kinds/jobset/decoded_jobset.hh"

#include <utility>

#include "api/api.hh"
#include "runtimes/jobset/admission.hh"

namespace trainer {

DecodedJobSet decode_jobset(std::shared_ptr<const kube::Json> object) {
  if (!jobset::lacks_late_defaults(*object)) {
    auto read = read_jobset(*object);
    return {std::move(object), std::move(read)};
  }
  kube::Json completed = *object;
  jobset::apply_late_defaults(completed);
  return {std::move(object), read_jobset(completed)};
}

}  // namespace trainer
