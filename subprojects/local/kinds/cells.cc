#include "local/kinds/cells.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kube/model/meta.hh"
#include "kube/model/text.hh"
#include "kube/server/tables.hh"

namespace trainer::local {
namespace {

using kube::Json;
using kube::Time;
using kube::server::human_age;

// ---- jobs

std::string job_status(const Json& job) {
  if (kube::has_condition(job, "Complete")) return "Complete";
  if (kube::has_condition(job, "Failed")) return "Failed";
  if (job.get("metadata").find("deletionTimestamp") != nullptr) return "Terminating";
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"})
    if (kube::has_condition(job, type)) return type;
  return "Running";
}

std::string job_completions(const Json& job) {
  const Json& spec = job.get("spec");
  const std::int64_t succeeded = job.get("status").get_int("succeeded");
  if (const Json* wanted = spec.find("completions"); wanted != nullptr && wanted->is_int())
    return fmt::format("{}/{}", succeeded, wanted->as_int());
  const std::int64_t parallelism = spec.get_int("parallelism");
  return parallelism > 1 ? fmt::format("{}/1 of {}", succeeded, parallelism)
                         : fmt::format("{}/1", succeeded);
}

std::string job_duration(const Json& job, Time now) {
  const Json& status = job.get("status");
  const auto start = Time::parse(status.get_string("startTime"));
  if (!start) return "";
  const Time end = Time::parse(status.get_string("completionTime")).value_or(now);
  return kube::server::human_duration(
      std::chrono::duration_cast<std::chrono::seconds>(end - *start));
}

std::string of_containers(const Json& pod_spec, std::string_view member) {
  std::vector<std::string> texts;
  for (const Json& container : pod_spec.get_array("containers"))
    texts.emplace_back(container.get_string(member));
  return join(texts, ",");
}

// ---- services

std::string external_addresses(const Json& service) {
  const Json& spec = service.get("spec");
  const std::string_view type = spec.get_string("type");
  if (type == "ExternalName") return std::string(spec.get_string("externalName"));
  std::vector<std::string> addresses;
  if (type == "LoadBalancer")
    for (const Json& ingress : service.get_path({"status", "loadBalancer"}).get_array("ingress"))
      addresses.push_back(text_or(ingress, "ip", ingress.get_string("hostname")));
  std::sort(addresses.begin(), addresses.end());
  for (const Json& address : spec.get_array("externalIPs"))
    if (address.is_string()) addresses.push_back(address.as_string());
  if (!addresses.empty()) return join(addresses, ",");
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

std::string print_ports(const Json& spec) {
  std::vector<std::string> texts;
  for (const Json& port : spec.get_array("ports")) {
    const std::int64_t node_port = port.get_int("nodePort");
    const std::string number = node_port > 0 ? fmt::format("{}:{}", port.get_int("port"), node_port)
                                             : std::to_string(port.get_int("port"));
    texts.push_back(number + "/" + std::string(port.get_string("protocol", "TCP")));
  }
  return texts.empty() ? "<none>" : join(texts, ",");
}

// ---- nodes

std::string node_status(const Json& node) {
  const std::string_view ready = kube::condition_of(node, "Ready").get_string("status");
  std::string text = ready.empty() ? "Unknown" : ready == "True" ? "Ready" : "NotReady";
  return node.get("spec").get_bool("unschedulable") ? text + ",SchedulingDisabled" : text;
}

std::string node_roles(const Json& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (const auto& [label, value] : node.get("metadata").get_object("labels")) {
    if (label.starts_with(kPrefix) && label.size() > kPrefix.size())
      roles.push_back(label.substr(kPrefix.size()));
    if (label == "kubernetes.io/role" && value.is_string() && !value.empty())
      roles.push_back(value.as_string());
  }
  std::sort(roles.begin(), roles.end());
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return roles.empty() ? "<none>" : join(roles, ",");
}

std::string node_address(const Json& node, std::string_view type) {
  for (const Json& address : node.get("status").get_array("addresses"))
    if (address.get_string("type") == type) return std::string(address.get_string("address"));
  return "<none>";
}

}  // namespace

std::vector<kube::server::Column> columns_of(std::string_view names) {
  std::vector<kube::server::Column> columns;
  while (!names.empty()) {
    const std::size_t end = names.find(',');
    std::string_view name = names.substr(0, end);
    names.remove_prefix(end == names.npos ? names.size() : end + 1);
    const bool is_wide = name.starts_with('+');
    if (is_wide) name.remove_prefix(1);
    columns.push_back({.name = std::string(name), .type = "string", .priority = is_wide ? 1 : 0});
  }
  return columns;
}

Json name_of(const Json& object) {
  return object.get("metadata").get_string("name");
}

Json age_of(const Json& object, Time now) {
  return human_age(object.get("metadata").get_string("creationTimestamp"), now);
}

std::string print_labels(const Json& labels) {
  std::vector<std::string> texts;
  if (labels.is_object())
    for (const auto& [name, value] : labels.as_object())
      texts.push_back(name + "=" + (value.is_string() ? value.as_string() : ""));
  return texts.empty() ? "<none>" : join(texts, ",");
}

std::string text_or(const Json& object, std::string_view member, std::string_view otherwise) {
  const std::string_view text = object.get_string(member);
  return std::string(text.empty() ? otherwise : text);
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
  return fmt::format("{}", fmt::join(texts, separator));
}

Json job_cells(const Json& job, Time now) {
  const Json& pod_spec = job.get_path({"spec", "template", "spec"});
  return Json::array({name_of(job), job_status(job), job_completions(job), job_duration(job, now),
                      age_of(job, now), of_containers(pod_spec, "name"),
                      of_containers(pod_spec, "image"),
                      print_labels(job.get_path({"spec", "selector", "matchLabels"}))});
}

Json service_cells(const Json& service, Time now) {
  const Json& spec = service.get("spec");
  const Json::Array& addresses = spec.get_array("clusterIPs");
  const Json address =
      addresses.empty() ? Json(text_or(spec, "clusterIP", "<none>")) : addresses.front();
  return Json::array({name_of(service), spec.get_string("type"), address,
                      external_addresses(service), print_ports(spec), age_of(service, now),
                      print_labels(spec.get("selector"))});
}

Json node_cells(const Json& node, Time now) {
  const Json& info = node.get_path({"status", "nodeInfo"});
  return Json::array({name_of(node), node_status(node), node_roles(node), age_of(node, now),
                      info.get_string("kubeletVersion"), node_address(node, "InternalIP"),
                      node_address(node, "ExternalIP"), text_or(info, "osImage", "<unknown>"),
                      text_or(info, "kernelVersion", "<unknown>"),
                      text_or(info, "containerRuntimeVersion", "<unknown>")});
}

Json event_cells(const Json& event, Time now) {
  const Json& object = event.get("involvedObject");
  const Json& series = event.get("series");
  const std::string first =
      human_age(text_or(event, "firstTimestamp", event.get_string("eventTime")), now);
  std::string last = first;
  if (const std::string_view time = event.get_string("lastTimestamp"); !time.empty())
    last = human_age(time, now);
  if (series.is_object()) last = human_age(series.get_string("lastObservedTime"), now);
  const std::int64_t count = series.is_object() ? series.get_int("count")
                                                : std::max<std::int64_t>(event.get_int("count"), 1);
  std::string target = kube::to_lower(object.get_string("kind"));
  if (const std::string_view name = object.get_string("name"); !name.empty())
    target += "/" + std::string(name);
  const Json& source = event.get("source");
  std::string from = text_or(source, "component", event.get_string("reportingComponent"));
  const std::string host = text_or(source, "host", event.get_string("reportingInstance"));
  if (!host.empty()) from += ", " + host;
  return Json::array({last, event.get_string("type"), event.get_string("reason"), target,
                      object.get_string("fieldPath"), from,
                      kube::trimmed(event.get_string("message"), " \t\r\n\v\f"), first, count,
                      name_of(event)});
}

}  // namespace trainer::local
