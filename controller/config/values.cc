#include "controller/config/values.hh"

#include <cmath>
#include <cstdint>

#include "kube/client/url.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

struct Unit {
  std::string_view name;
  double milliseconds;
};
// Longer names come first: "ms" starts like "m".
constexpr Unit kUnits[] = {{"ns", 1e-6}, {"us", 1e-3},  {"\xc2\xb5s", 1e-3}, {"ms", 1},
                           {"s", 1e3},   {"m", 60'000}, {"h", 3'600'000}};
constexpr double kTenYears = 10.0 * 365 * 24 * 3'600'000;

std::optional<double> take_number(std::string_view& text) {
  const auto end = text.find_first_not_of("0123456789.");
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(digits.size());
  return kube::parse_number<double>(digits);
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.milliseconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    const auto number = take_number(text);
    const auto unit = number ? take_unit(text) : std::nullopt;
    if (!unit) return std::nullopt;
    total += *number * *unit;
  }
  if (!(total <= kTenYears)) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(total)));
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = kube::parse_number<unsigned short>(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]/ ") != std::string_view::npos) {
    return std::nullopt;
  }
  return Endpoint{std::string(host), *port};
}

std::optional<Endpoint> parse_https_url(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  if (!text.starts_with(kScheme)) return std::nullopt;
  text.remove_prefix(kScheme.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find_first_of("/?#@ ") != std::string_view::npos) return std::nullopt;
  // Without a port the last colon, if any, belongs to an IPv6 address in brackets.
  const bool has_port = text.rfind(':') != std::string_view::npos && !text.ends_with(']');
  auto endpoint = parse_endpoint(has_port ? std::string(text) : std::string(text) + ":443");
  if (!endpoint || endpoint->host.empty()) return std::nullopt;
  return endpoint;
}

std::string https_url(const Endpoint& server) {
  kube::ServerUrl url;
  url.host = server.host;
  url.port = std::to_string(server.port);
  return "https://" + url.authority();
}

}  // namespace trainer
