// The certificates of the webhook, metrics and status servers: made, judged and carried in a Secret
// (trainer-contract 7.4).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace trainer {

struct CertificateBundle {
  // PEM. The first certificate signs; one that it replaced may follow, so that servers which still
  // show the old one stay trusted.
  std::string ca_certificate;
  kube::Secret<std::string> ca_key;
  std::string certificate;
  kube::Secret<std::string> key;
};

// A server certificate for `hosts` (DNS names or IP addresses), valid for a year, signed by the CA
// of `previous` while that lasts, else by a new CA, valid for ten years. Both are valid from an
// hour before `now`, for clocks that run behind. Keys are P-256.
kube::Result<CertificateBundle> make_certificates(const std::vector<std::string>& hosts,
                                                  kube::Time now,
                                                  const CertificateBundle* previous = nullptr);

// Why the bundle must be made anew at `now`, for the log; empty while it may stay. It may stay when
// CA and server certificate hold for 90 more days, belong together and to their keys, and the
// server certificate names all `hosts`.
std::string reason_to_renew(const CertificateBundle& bundle, const std::vector<std::string>& hosts,
                            kube::Time now);

// The Secret's keys ca.crt, tls.crt and tls.key, and ca.key where it holds one (a Secret filled by
// somebody else does not). Nullopt when another one is missing, empty or no base64.
std::optional<CertificateBundle> read_certificate_secret(const kube::Json& secret);
// The same as the Secret's `data`.
kube::Json certificate_secret_data(const CertificateBundle& bundle);

}  // namespace trainer
