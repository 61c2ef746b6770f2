// Services, which give pods their DNS names. Local mode has no cluster IPs, so a Service that asks
// for none is headless.
#include <string>
#include <string_view>

#include "kube/model/resources.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

void set_service_defaults(Json& service) {
  // This comes first: a new member moves the others.
  set_default(service, "status", Json::object({{"loadBalancer", Json::object()}}));
  Json& spec = service["spec"];
  set_default(spec, "type", "ClusterIP");
  set_default(spec, "sessionAffinity", "None");
  // Go leaves it out (omitempty).
  if (spec.get("publishNotReadyAddresses") == Json(false)) spec.erase("publishNotReadyAddresses");
  if (Json* ports = spec.find("ports"))
    for (Json& port : ports->as_array()) {
      set_default(port, "protocol", "TCP");
      set_default(port, "targetPort", port.get("port"));
    }
  if (spec.get_string("type") == "ExternalName") return;
  set_default(spec, "internalTrafficPolicy", "Cluster");
  set_default(spec, "clusterIP", "None");
  set_default(spec, "clusterIPs", Json::array({spec.get("clusterIP")}));
  set_default(spec, "ipFamilies", Json::array({"IPv4"}));
  set_default(spec, "ipFamilyPolicy", "SingleStack");
}

void check_ports(const Json& spec, FieldErrors& errors) {
  const auto& ports = spec.get_array("ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string path = kube::join_index("spec.ports", i);
    const std::int64_t port = ports[i].get_int("port");
    if (port < 1 || port > 65535)
      errors.push_back(kube::invalid(kube::join_field(path, "port"), port,
                                     "must be between 1 and 65535, inclusive"));
    if (ports.size() > 1 && ports[i].get_string("name").empty())
      errors.push_back(kube::required(kube::join_field(path, "name"), ""));
  }
}

FieldErrors check_service(const Json& service, const Json* before) {
  FieldErrors errors;
  const Json& spec = service.get("spec");
  const std::string_view type = spec.get_string("type");
  if (type != "ClusterIP" && type != "ExternalName" && type != "NodePort" && type != "LoadBalancer")
    errors.push_back(kube::not_supported(
        "spec.type", type, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}));
  check_ports(spec, errors);
  if (before != nullptr && type == before->get("spec").get_string("type"))
    check_immutable(spec, before->get("spec"), "spec", {"clusterIP"}, errors);
  return errors;
}

}  // namespace

Builtin service_kind() {
  return {.resource = kube::kServices,
          .short_names = {"svc"},
          .rules = {set_service_defaults, check_service},
          .columns = "Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector",
          .cells = service_cells,
          .has_status = true,
          .is_of_all = true};
}

}  // namespace trainer::local
