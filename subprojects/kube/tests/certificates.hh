// Certificates for tests, made on the spot.
#pragma once

#include <string>

namespace kube {

struct Certificate {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// Signs itself, unless it has an issuer; valid for an hour for `dns_name` and, where given, an IP
// address. Without `has_names` the name is its CN alone.
Certificate make_certificate(const std::string& dns_name, const std::string& ip = "",
                             const Certificate* issuer = nullptr, bool has_names = true);
// One for "test.local" and 127.0.0.1, made once.
const Certificate& test_certificate();

}  // namespace kube
