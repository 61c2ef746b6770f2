// These are small value syntaxes of the configuration file and the command line. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainer {

// Parses a duration in Go's form: "15s", "1m30s", "1.5h", "250ms", "0". Nullopt for anything else,
// for negative ones and above 10 years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// A server listens, or is reached, at an endpoint.
struct Endpoint {
  std::string host;  // empty: all interfaces; an IPv6 address without brackets
  unsigned short port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Parses "HOST:PORT", ":PORT" or "[IPV6]:PORT"; the port may be 0 for any free one.
std::optional<Endpoint> parse_endpoint(std::string_view text);

// Parses "https://HOST:PORT", with or without a final slash; the port defaults to 443. Nullopt for
// any other scheme, a path or a query.
std::optional<Endpoint> parse_https_url(std::string_view text);

// Returns "https://HOST:PORT", with an IPv6 address in brackets.
std::string https_url(const Endpoint& server);

}  // namespace trainer
