#include "kube/model/pod_checks.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "kube/model/check_items.hh"
#include "kube/model/names.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/text.hh"

namespace kube {
namespace {

using Names = std::set<std::string_view>;

// Checks a name that must exist, is a DNS label, and is there once.
void check_name(const Json& item, const std::string& path, Names& names, FieldErrors& errors) {
  const std::string at = join_field(path, "name");
  const std::string_view name = item.get_string("name");
  if (name.empty()) return errors.push_back(required(at, ""));
  for (std::string& problem : dns1123_label_problems(name))
    errors.push_back(invalid(at, name, std::move(problem)));
  if (!names.insert(name).second) errors.push_back(duplicate(at, name));
}

// Any printable ASCII but "=" is a name since Kubernetes 1.32; before, fewer characters were.
bool is_env_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '='; });
}

bool is_pod_field(std::string_view path) {
  static constexpr std::array<std::string_view, 9> kFields = {"metadata.name",
                                                              "metadata.namespace",
                                                              "metadata.uid",
                                                              "spec.nodeName",
                                                              "spec.serviceAccountName",
                                                              "status.hostIP",
                                                              "status.hostIPs",
                                                              "status.podIP",
                                                              "status.podIPs"};
  if (std::ranges::find(kFields, path) != kFields.end()) return true;
  return path.ends_with("']") &&
         (path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['"));
}

void check_env_source(const Json& source, const std::string& path, FieldErrors& errors) {
  const Json& field = source.get("fieldRef");
  if (!field.is_object()) return;
  const std::string_view of_pod = field.get_string("fieldPath");
  if (!is_pod_field(of_pod))
    errors.push_back(not_supported(
        join_field(path, "fieldRef.fieldPath"), of_pod,
        {"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['KEY']",
         "metadata.annotations['KEY']", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
         "status.hostIPs", "status.podIP", "status.podIPs"}));
}

void check_env(const Json& container, const std::string& path, FieldErrors& errors) {
  check_items(container, "env", path, errors, [&](const Json& variable, const std::string& at) {
    const std::string_view name = variable.get_string("name");
    if (name.empty()) {
      errors.push_back(required(join_field(at, "name"), ""));
    } else if (!is_env_name(name)) {
      errors.push_back(invalid(join_field(at, "name"), name,
                               "a valid environment variable name must consist only of printable "
                               "ASCII characters other than '='"));
    }
    check_env_source(variable.get("valueFrom"), join_field(at, "valueFrom"), errors);
  });
}

void check_env_from(const Json& container, const std::string& path, FieldErrors& errors) {
  check_items(container, "envFrom", path, errors,
              [&](const Json& from, const std::string& of_item) {
                for (const char* kind : {"configMapRef", "secretRef"}) {
                  const Json& source = from.get(kind);
                  if (!source.is_object()) continue;
                  const std::string at = join_field(join_field(of_item, kind), "name");
                  const std::string_view name = source.get_string("name");
                  if (name.empty()) {
                    errors.push_back(required(at, ""));
                    continue;
                  }
                  for (std::string& problem : dns1123_subdomain_problems(name))
                    errors.push_back(invalid(at, name, std::move(problem)));
                }
              });
}

// This is the name of a port, not of a port on the pod's host.
std::string port_name_problem(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() > 15) return "must be no more than 15 characters";
  if (!std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c) || c == '-'; }))
    return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  if (std::ranges::none_of(name, is_letter)) return "must contain at least one letter (a-z)";
  if (name.find("--") != name.npos) return "must not contain consecutive hyphens";
  if (name.front() == '-' || name.back() == '-') return "must not begin or end with a hyphen";
  return {};
}

void check_port_number(std::int64_t port, std::string path, FieldErrors& errors) {
  if (port < 1 || port > 65535)
    errors.push_back(invalid(std::move(path), port, "must be between 1 and 65535, inclusive"));
}

void check_ports(const Json& container, const std::string& path, bool is_of_host,
                 FieldErrors& errors) {
  Names names;
  check_items(container, "ports", path, errors, [&](const Json& item, const std::string& at) {
    if (const std::string_view name = item.get_string("name"); !name.empty()) {
      if (std::string problem = port_name_problem(name); !problem.empty())
        errors.push_back(invalid(join_field(at, "name"), name, std::move(problem)));
      else if (!names.insert(name).second)
        errors.push_back(duplicate(join_field(at, "name"), name));
    }
    const std::int64_t port = item.get_int("containerPort");
    check_port_number(port, join_field(at, "containerPort"), errors);
    if (const std::int64_t host = item.get_int("hostPort"); host != 0) {
      check_port_number(host, join_field(at, "hostPort"), errors);
      if (is_of_host && host != port)
        errors.push_back(invalid(join_field(at, "containerPort"), port,
                                 "must match `hostPort` when `hostNetwork` is true"));
    }
    check_word(item, "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
  });
}

void check_sub_path(const Json& mount, const std::string& path, FieldErrors& errors) {
  const std::string_view below = mount.get_string("subPath");
  const std::string at = join_field(path, "subPath");
  if (below.starts_with('/')) errors.push_back(invalid(at, below, "must be a relative path"));
  for (std::size_t start = 0; start <= below.size();) {
    const std::size_t end = std::min(below.find('/', start), below.size());
    if (below.substr(start, end - start) == "..") {
      errors.push_back(invalid(at, below, "must not contain '..'"));
      break;
    }
    start = end + 1;
  }
  if (!below.empty() && !mount.get_string("subPathExpr").empty())
    errors.push_back(invalid(join_field(path, "subPathExpr"), mount.get_string("subPathExpr"),
                             "subPathExpr and subPath are mutually exclusive"));
}

void check_mounts(const Json& container, const std::string& path, const Names& volumes,
                  FieldErrors& errors) {
  Names paths;
  check_items(container, "volumeMounts", path, errors,
              [&](const Json& mount, const std::string& at) {
                const std::string_view name = mount.get_string("name");
                const std::string_view target = mount.get_string("mountPath");
                if (!volumes.contains(name))
                  errors.push_back(invalid(join_field(at, "name"), name,
                                           "not found: no volume of the pod has this name"));
                if (target.empty()) errors.push_back(required(join_field(at, "mountPath"), ""));
                if (!target.empty() && !paths.insert(target).second)
                  errors.push_back(duplicate(join_field(at, "mountPath"), target));
                check_sub_path(mount, at, errors);
              });
}

bool is_huge_pages(std::string_view resource) {
  return resource.starts_with("hugepages-");
}

// Returns whether a resource is not Kubernetes' own: a device of a plugin. Only whole ones can be
// requested, and no more than the limit says.
bool is_extended(std::string_view resource) {
  return resource.find('/') != resource.npos && resource.find("kubernetes.io/") == resource.npos;
}

void check_amounts(const ResourceList& amounts, const std::string& path, FieldErrors& errors) {
  static constexpr std::array<std::string_view, 3> kKnown = {"cpu", "memory", "ephemeral-storage"};
  for (const auto& [name, amount] : amounts) {
    if (errors.size() >= kMaxErrors) return;
    const std::string at = join_key(path, name);
    for (std::string& problem : qualified_name_problems(name))
      errors.push_back(invalid(at, name, std::move(problem)));
    if (name.find('/') == name.npos && !is_huge_pages(name) &&
        std::ranges::find(kKnown, name) == kKnown.end())
      errors.push_back(invalid(at, name,
                               "must be a standard resource for containers (cpu, memory, "
                               "ephemeral-storage, hugepages-SIZE) or fully qualified, such as "
                               "nvidia.com/gpu"));
    if (amount < Quantity())
      errors.push_back(invalid(at, amount.to_string(), "must be greater than or equal to 0"));
    if (is_extended(name) && !(Quantity::of(amount.value()) == amount))
      errors.push_back(invalid(at, amount.to_string(), "must be an integer"));
  }
}

void check_resources(const Json& container, const std::string& path, FieldErrors& errors) {
  const auto limits = read_resources(container, "limits");
  const auto requests = read_resources(container, "requests");
  check_amounts(limits, join_field(path, "resources.limits"), errors);
  check_amounts(requests, join_field(path, "resources.requests"), errors);
  for (const auto& [name, request] : requests) {
    if (errors.size() >= kMaxErrors) return;
    const bool is_bound = is_extended(name) || is_huge_pages(name);
    const auto limit = limits.find(name);
    if (limit == limits.end()) {
      if (is_bound)
        errors.push_back(required(join_key(join_field(path, "resources.limits"), name),
                                  "Limit must be set for non overcommitable resources: write the "
                                  "request's amount as the limit, too"));
    } else if (is_bound && !(request == limit->second)) {
      errors.push_back(invalid(join_field(path, "resources.requests"), request.to_string(),
                               "must be equal to {} limit of {}", name, limit->second.to_string()));
    } else if (limit->second < request) {
      errors.push_back(invalid(join_field(path, "resources.requests"), request.to_string(),
                               "must be less than or equal to {} limit of {}", name,
                               limit->second.to_string()));
    }
  }
  const auto has = [](const ResourceList& amounts, auto matches) {
    return std::ranges::any_of(amounts, [&](const auto& item) { return matches(item.first); });
  };
  const auto is_base = [](std::string_view name) { return name == "cpu" || name == "memory"; };
  if ((has(limits, is_huge_pages) || has(requests, is_huge_pages)) && !has(limits, is_base) &&
      !has(requests, is_base))
    errors.push_back(forbidden(join_field(path, "resources"), "HugePages require cpu or memory"));
}

void check_users(const Json& owner, std::string_view path, FieldErrors& errors) {
  const Json& context = owner.get("securityContext");
  for (const char* name : {"runAsUser", "runAsGroup", "fsGroup"}) {
    const std::int64_t id = context.get_int(name);
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
      errors.push_back(invalid(join_field(join_field(path, "securityContext"), name), id,
                               "must be between 0 and 2147483647, inclusive"));
  }
}

void check_image(const Json& container, const std::string& path, FieldErrors& errors) {
  const std::string_view image = container.get_string("image");
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  if (image.empty()) return errors.push_back(required(join_field(path, "image"), ""));
  // Templates may have such spaces, but no pod is created from such a template.
  if (kSpaces.find(image.front()) != kSpaces.npos || kSpaces.find(image.back()) != kSpaces.npos)
    errors.push_back(
        invalid(join_field(path, "image"), image, "must not have leading or trailing whitespace"));
}

void check_containers(const Json& spec, std::string_view path, std::string_view list,
                      const Names& volumes, Names& names, FieldErrors& errors) {
  check_items(spec, list, path, errors, [&](const Json& container, const std::string& at) {
    check_name(container, at, names, errors);
    check_image(container, at, errors);
    check_word(container, "imagePullPolicy", at, {"Always", "IfNotPresent", "Never"}, errors);
    check_word(container, "terminationMessagePolicy", at, {"FallbackToLogsOnError", "File"},
               errors);
    check_env(container, at, errors);
    check_env_from(container, at, errors);
    check_ports(container, at, spec.get_bool("hostNetwork"), errors);
    check_mounts(container, at, volumes, errors);
    check_resources(container, at, errors);
    check_users(container, at, errors);
  });
}

void check_volume_source(const Json& volume, const std::string& path, FieldErrors& errors) {
  static constexpr std::array<std::array<std::string_view, 2>, 4> kNeeded = {
      {{"persistentVolumeClaim", "claimName"},
       {"configMap", "name"},
       {"secret", "secretName"},
       {"hostPath", "path"}}};
  for (const auto& [source, member] : kNeeded) {
    const Json* found = volume.find(source);
    if (found != nullptr && found->is_object() && found->get_string(member).empty())
      errors.push_back(required(join_field(join_field(path, source), member), ""));
  }
}

Names check_volumes(const Json& spec, std::string_view path, FieldErrors& errors) {
  Names names;
  check_items(spec, "volumes", path, errors, [&](const Json& volume, const std::string& at) {
    check_name(volume, at, names, errors);
    check_volume_source(volume, at, errors);
  });
  return names;
}

}  // namespace

std::optional<std::string> several_words_in_one(std::string_view program) {
  constexpr std::string_view kSpaces = " \t\n";
  const std::size_t start = std::min(program.find_first_not_of(kSpaces), program.size());
  const std::size_t end = program.find_first_of(kSpaces, start);
  if (end == program.npos || start == program.size()) return std::nullopt;
  constexpr std::size_t kShown = 60;
  const std::string_view line = program.substr(start, program.find('\n', start) - start);
  const std::string_view shown = head_of(line, kShown);
  return fmt::format(
      "\"{}{}\" is one word with spaces, and no program has this name: write each word as an item "
      "of its own ([{}, ...]), or start a shell ([sh, -c, ...])",
      shown, shown.size() < line.size() ? " ..." : "",
      head_of(program.substr(start, end - start), kShown));
}

void check_word(const Json& object, std::string_view name, std::string_view path,
                const std::vector<std::string_view>& words, FieldErrors& errors) {
  const Json* word = object.find(name);
  if (word == nullptr || !word->is_string() || word->as_string().empty())
    return;  // "": the default
  if (std::find(words.begin(), words.end(), word->as_string()) == words.end())
    errors.push_back(not_supported(join_field(path, name), *word, words));
}

void check_pod_spec(const Json& spec, std::string_view path, FieldErrors& errors) {
  const Names volumes = check_volumes(spec, path, errors);
  if (spec.get_array("containers").empty())
    errors.push_back(required(join_field(path, "containers"), ""));
  Names names;
  for (const char* list : {"containers", "initContainers"})
    check_containers(spec, path, list, volumes, names, errors);
  check_word(spec, "restartPolicy", path, {"Always", "OnFailure", "Never"}, errors);
  check_word(spec, "dnsPolicy", path,
             {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, errors);
  if (const std::string_view account = spec.get_string("serviceAccountName"); !account.empty())
    for (std::string& problem : dns1123_subdomain_problems(account))
      errors.push_back(
          invalid(join_field(path, "serviceAccountName"), account, std::move(problem)));
  check_users(spec, path, errors);
  check_pod_unions(spec, path, errors);
  check_pod_names(spec, path, errors);
  check_pod_placement(spec, path, errors);
}

void check_pod_template(const Json& pod_template, std::string_view path, FieldErrors& errors) {
  check_labels_and_annotations(pod_template.get("metadata"), join_field(path, "metadata"), errors);
  check_pod_spec(pod_template.get("spec"), join_field(path, "spec"), errors);
}

}  // namespace kube
