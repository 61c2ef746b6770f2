#include "controller/admission/admission_reader.hh"

#include <utility>

namespace trainer {

using kube::Result;
using kube::Task;

Task<Result<AdmissionReader::Object>> AdmissionReader::read(kube::Resource resource,
                                                            kube::ObjectKey key) {
  const std::string what = resource.kind + " " + key.to_string();
  auto got = co_await client_.get(std::move(resource), std::move(key));
  if (got) co_return std::make_shared<const kube::Json>(std::move(*got));
  if (got.error().code == kube::ErrorCode::kNotFound) co_return Object();
  co_return tl::unexpected(got.error().at(what));
}

Task<Result<AdmissionReader::Object>> AdmissionReader::read_cached(kube::Resource resource,
                                                                   kube::ObjectKey key) {
  if (const auto stored = state_.find(resource, key)) co_return *decoded_.of(stored);
  co_return co_await read(std::move(resource), std::move(key));
}

}  // namespace trainer
