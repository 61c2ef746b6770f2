// In a union of a pod, one of several members is to be set (pkg/apis/core/validation,
// validateEnvVarValueFrom, validateEnvFrom, validateHandler, validateVolumeSource,
// validateProjectionSources).
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/check_items.hh"
#include "kube/model/pod_checks.hh"

namespace kube {
namespace {

// Returns the number of members that are set, without these.
std::size_t count_set(const Json& value, std::string_view other = {}) {
  if (!value.is_object()) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      value.as_object(),
      [other](const auto& member) { return member.first != other && !member.second.is_null(); }));
}

void check_env_sources(const Json& container, const std::string& path, FieldErrors& errors) {
  check_items(container, "env", path, errors, [&](const Json& variable, const std::string& at) {
    const Json& source = variable.get("valueFrom");
    if (!source.is_object()) return;
    const std::size_t count = count_set(source);
    const char* problem =
        count == 0 ? "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                     "`secretKeyRef`"
        : !variable.get_string("value").empty() ? "may not be specified when `value` is not empty"
        : count > 1 ? "may not have more than one field specified at a time"
                    : nullptr;
    if (problem != nullptr) errors.push_back(invalid(join_field(at, "valueFrom"), "", problem));
  });
  // Kubernetes names the list, not its item.
  const std::string list = join_field(path, "envFrom");
  check_items(container, "envFrom", path, errors, [&](const Json& source, const std::string&) {
    if (!source.is_object()) return;
    const std::size_t count = count_set(source, "prefix");
    if (count == 0)
      errors.push_back(invalid(list, "", "must specify one of: `configMapRef` or `secretRef`"));
    if (count > 1)
      errors.push_back(invalid(list, "", "may not have more than one field specified at a time"));
  });
}

void check_handler(const Json& owner, std::string_view member, const std::string& path,
                   FieldErrors& errors) {
  static constexpr std::array<std::string_view, 5> kHandlers = {"exec", "httpGet", "tcpSocket",
                                                                "grpc", "sleep"};
  const Json& value = owner.get(member);
  if (!value.is_object()) return;
  const std::string at = join_field(path, member);
  bool has_one = false;
  for (const std::string_view handler : kHandlers) {
    if (value.get(handler).is_null()) continue;
    if (has_one)
      errors.push_back(
          forbidden(join_field(at, handler), "may not specify more than 1 handler type"));
    has_one = true;
  }
  if (!has_one) errors.push_back(required(at, "must specify a handler type"));
}

// Without a type a volume is an emptyDir.
void check_volume_types(const Json& spec, std::string_view path, FieldErrors& errors) {
  check_items(spec, "volumes", path, errors, [&](const Json& volume, const std::string& at) {
    if (count_set(volume, "name") > 1)
      errors.push_back(forbidden(at, "may not specify more than 1 volume type"));
    check_items(volume.get("projected"), "sources", join_field(at, "projected"), errors,
                [&](const Json& source, const std::string& of_source) {
                  if (count_set(source) > 1)
                    errors.push_back(
                        forbidden(of_source, "may not specify more than 1 volume type per source"));
                });
  });
}

}  // namespace

void check_pod_unions(const Json& spec, std::string_view path, FieldErrors& errors) {
  check_volume_types(spec, path, errors);
  for (const char* list : {"containers", "initContainers"})
    check_items(spec, list, path, errors, [&](const Json& container, const std::string& at) {
      check_env_sources(container, at, errors);
      for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
        check_handler(container, probe, at, errors);
      for (const char* hook : {"postStart", "preStop"})
        check_handler(container.get("lifecycle"), hook, join_field(at, "lifecycle"), errors);
    });
}

}  // namespace kube
