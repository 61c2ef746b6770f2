// The little of URLs that the client needs. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/error.hh"

namespace kube {

struct ServerUrl {
  bool is_tls = true;
  std::string host;  // without brackets
  std::string port;
  std::string base_path;  // "" or "/prefix", without a slash at its end
  // host:port as the Host header has it.
  std::string authority() const;
};

// "https://host[:port][/path]" or "http://..."; errors (kInvalid) quote the text.
Result<ServerUrl> parse_server_url(std::string_view text);

// RFC 3986: everything but unreserved characters as %XX.
std::string percent_encode(std::string_view text);

}  // namespace kube
