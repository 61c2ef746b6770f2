#include "runtimes/lifecycle/pod_warnings.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "kube/model/check_items.hh"
#include "kube/model/pod_checks.hh"

namespace trainer {
namespace {

using kube::Json;

// The last variable of each name.
std::map<std::string_view, const Json*> effective_variables(const Json& container) {
  std::map<std::string_view, const Json*> last;
  for (const Json& variable : container.get_array("env"))
    last[variable.get_string("name")] = &variable;
  return last;
}

// Returns the names of variables that have another value in the pod, in the user's order.
std::vector<std::string_view> replaced_variables(const Json& own, const Json& built) {
  const auto of_user = effective_variables(own);
  const auto of_pod = effective_variables(built);
  std::vector<std::string_view> names;
  std::set<std::string_view> seen;
  for (const Json& variable : own.get_array("env")) {
    const std::string_view name = variable.get_string("name");
    const auto found = of_pod.find(name);
    if (found != of_pod.end() && *found->second != *of_user.at(name) && seen.insert(name).second)
      names.push_back(name);
  }
  return names;
}

const Json::Array& containers_of(const Json& pod_template) {
  return pod_template.get("spec").get_array("containers");
}

std::string containers_path(std::string_view path) {
  return fmt::format("{}.template.spec.containers", path);
}

}  // namespace

kube::FieldErrors errors_of_pods(const Json& pod_template, const Json& pod,
                                 const std::string& path) {
  kube::FieldErrors errors;
  Json own = pod_template;
  if (Json* spec = own.find("spec"); spec != nullptr && spec->is_object())
    spec->erase("restartPolicy");
  kube::check_pod_template(own, path + ".template", errors);
  kube::FieldErrors of_pod;
  kube::check_pod_template(pod, path + ".template", of_pod);
  kube::erase_known(of_pod, errors);
  for (kube::FieldError& error : of_pod)
    if (error.type == kube::FieldError::Type::kDuplicate) errors.push_back(std::move(error));
  return errors;
}

void warn_about_restart_policy(const Json& pod_template, std::string_view of_pods,
                               std::string_view path, std::vector<std::string>& out) {
  const std::string_view ignored = pod_template.get("spec").get_string("restartPolicy");
  if (ignored.empty() || ignored == of_pods || out.size() >= kube::kMaxWarnings) return;
  out.push_back(
      fmt::format("{0}.template.spec.restartPolicy: {1} has no effect, and pods have {2}: set "
                  "{0}.restartPolicy",
                  path, ignored, of_pods));
}

void warn_about_commands(const Json& pod_template, std::string_view path,
                         std::vector<std::string>& out) {
  const Json::Array& containers = containers_of(pod_template);
  for (std::size_t i = 0; i < containers.size() && out.size() < kube::kMaxWarnings; ++i) {
    const Json::Array& command = containers[i].get_array("command");
    if (command.empty() || !command[0].is_string()) continue;
    if (auto warning = kube::several_words_in_one(command[0].as_string()))
      out.push_back(
          fmt::format("{}.command[0]: {}", kube::join_index(containers_path(path), i), *warning));
  }
}

void warn_about_replaced_variables(const Json& pod_template, const Json& pod, std::string_view path,
                                   std::vector<std::string>& out) {
  const Json::Array& before = containers_of(pod_template);
  const Json::Array& after = containers_of(pod);
  const std::size_t count = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < count && out.size() < kube::kMaxWarnings; ++i) {
    const std::vector<std::string_view> names = replaced_variables(before[i], after[i]);
    if (names.empty()) continue;
    const bool is_one = names.size() == 1;
    out.push_back(
        fmt::format("{}.env: {} {} no effect, because the controller sets {}; leave {} out",
                    kube::join_index(containers_path(path), i), fmt::join(names, ", "),
                    is_one ? "has" : "have", is_one ? "it" : "them", is_one ? "it" : "them"));
  }
}

void warn_about_gang_size(std::optional<std::int64_t> least, std::int64_t pods,
                          std::vector<std::string>& out) {
  if (least && *least > pods && out.size() < kube::kMaxWarnings)
    out.push_back(fmt::format(
        "spec.runPolicy.schedulingPolicy.minAvailable: a gang scheduler waits for {} pods, and "
        "this job has {}; leave it out for all of them",
        *least, pods));
}

}  // namespace trainer
