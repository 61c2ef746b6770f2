// The suffix of a cluster's DNS names, as a pod of the cluster sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainer {

// Returns DOMAIN of a search path "NAMESPACE.svc.DOMAIN svc.DOMAIN DOMAIN" in the text of
// /etc/resolv.conf; "" outside of a cluster.
std::string cluster_domain_in(std::string_view resolv_conf);

// Returns a warning if this process runs in a cluster of another domain than the configured one.
std::optional<std::string> cluster_domain_warning(std::string_view configured,
                                                  std::string_view resolv_conf);

}  // namespace trainer
