// Certificates for tests, made on the spot.
#pragma once

#include <string>

namespace kube {

struct Certificate {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// The certificate signs itself, unless it has an issuer. It is valid for an hour for `dns_name`
// and, if one is set, an IP address. Without `has_names` the name is its CN alone.
Certificate make_certificate(const std::string& dns_name, const std::string& ip = "",
                             const Certificate* issuer = nullptr, bool has_names = true);
// Returns a certificate for "test.local" and 127.0.0.1, made once.
const Certificate& test_certificate();

}  // namespace kube
