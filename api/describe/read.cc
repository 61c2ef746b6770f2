#include "api/api.hh"
#include "api/describe/jobset.hh"
#include "api/describe/reader.hh"
#include "api/describe/runtime.hh"
#include "api/describe/trainjob.hh"

namespace trainer {
namespace {

template <class T>
tl::expected<T, kube::FieldErrors> read_as(const kube::Json& value, std::string_view path) {
  T out;
  kube::FieldErrors errors;
  wire::read_object(value, wire::FieldPath(path), out, errors);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return out;
}

}  // namespace

tl::expected<TrainJob, kube::FieldErrors> read_trainjob(const kube::Json& object) {
  return read_as<TrainJob>(object, "");
}

tl::expected<Runtime, kube::FieldErrors> read_runtime(const kube::Json& object) {
  return read_as<Runtime>(object, "");
}

tl::expected<JobSet, kube::FieldErrors> read_jobset(const kube::Json& object) {
  return read_as<JobSet>(object, "");
}

tl::expected<JobSetSpec, kube::FieldErrors> read_jobset_spec(const kube::Json& spec,
                                                             std::string_view path) {
  return read_as<JobSetSpec>(spec, path);
}

}  // namespace trainer
