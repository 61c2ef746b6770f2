#include "kube/client/url.hh"

#include <fmt/format.h>

#include <iterator>

namespace kube {

namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string ServerUrl::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return fail(ErrorCode::kInvalid, "server \"" + std::string(text) + "\" " + std::string(why) +
                                         "; it should read like https://host:6443");
  };
  ServerUrl url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    url.is_tls = false;
  } else {
    return bad("has neither the scheme https nor http");
  }
  const auto slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.base_path = rest.substr(slash);
  while (url.base_path.ends_with('/')) url.base_path.pop_back();
  if (url.base_path.find_first_of("?# \t\r\n") != std::string::npos)
    return bad("has a query or spaces");

  std::string_view port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return bad("has an unclosed bracket");
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const auto colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (url.host.empty()) return bad("names no host");
  if (url.host.find_first_of("@?# \t\r\n") != std::string::npos) return bad("has a malformed host");
  if (port.empty()) {
    url.port = url.is_tls ? "443" : "80";
  } else {
    port.remove_prefix(port.front() == ':' ? 1 : 0);
    const bool is_number =
        !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (!is_number || std::stoul(std::string(port)) > 65'535) return bad("has a malformed port");
    url.port = port;
  }
  return url;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace kube
