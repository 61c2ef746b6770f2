#include "runtimes/views/created_version.hh"

#include <functional>

namespace trainer {
namespace {

using kube::Json;

std::uint64_t hash_of(std::string_view version) {
  return std::hash<std::string_view>()(version);
}

}  // namespace

std::string_view created_version(const Json& object) {
  const Json& metadata = object.get("metadata");
  const auto stamp = metadata.get("annotations").get_string(kCreatedVersionKey);
  if (!stamp.empty()) return stamp;
  const Json* oldest = nullptr;
  for (const Json& entry : metadata.get_array("managedFields")) {
    if (!entry.get_string("subresource").empty()) continue;
    // These texts are in the order of their times: all are RFC 3339 in UTC, with whole seconds.
    if (!oldest || entry.get_string("time") < oldest->get_string("time")) oldest = &entry;
  }
  if (!oldest) return {};
  const std::string_view version = oldest->get_string("apiVersion");
  return version.substr(version.rfind('/') + 1);
}

std::vector<kube::JsonFilter> seen_of_created_version() {
  using enum kube::JsonFilter::Members;
  return {{"annotations", kInclude, {{kCreatedVersionKey}}},
          {"managedFields", kInclude, {{"apiVersion"}, {"time"}, {"subresource"}}}};
}

std::optional<std::uint64_t> version_fingerprint(const Json& object) {
  const std::string_view version = created_version(object);
  return version.empty() ? std::nullopt : std::optional(hash_of(version));
}

bool is_created_at(std::optional<std::uint64_t> fingerprint, std::string_view version) {
  return !fingerprint || *fingerprint == hash_of(version);
}

}  // namespace trainer
