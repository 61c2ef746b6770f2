#include "controller/config/cluster_domain.hh"

#include <fmt/format.h>

#include <sstream>

namespace trainer {

std::string cluster_domain_in(std::string_view resolv_conf) {
  constexpr std::string_view kServices = "svc.";
  std::istringstream lines{std::string(resolv_conf)};
  std::string domain;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "search") continue;
    domain.clear();  // the last line counts
    while (words >> word)
      if (word.starts_with(kServices)) domain = word.substr(kServices.size());
  }
  while (domain.ends_with('.')) domain.pop_back();
  return domain;
}

std::optional<std::string> cluster_domain_warning(std::string_view configured,
                                                  std::string_view resolv_conf) {
  const std::string found = cluster_domain_in(resolv_conf);
  if (found.empty() || found == configured) return std::nullopt;
  return fmt::format(
      "clusterDomain is \"{}\", and /etc/resolv.conf of this pod says \"{}\": jobs with "
      "processRestarts, and those of Flux, do not find their hosts; set clusterDomain: {}",
      configured, found, found);
}

}  // namespace trainer
