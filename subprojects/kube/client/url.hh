// The client needs only this part of URLs. Pure.
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
  // Returns host:port in the form of the Host header.
  std::string authority() const;
};

// Parses "https://host[:port][/path]" or "http://..."; errors (kInvalid) quote the text.
Result<ServerUrl> parse_server_url(std::string_view text);

// Encodes by RFC 3986: everything except unreserved characters becomes %XX.
std::string percent_encode(std::string_view text);

}  // namespace kube
