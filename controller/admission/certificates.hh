// The certificates of the webhook, metrics and status servers: made, judged and carried in a Secret
// (trainer-contract 7.4).
#pragma once

#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace trainer {

struct CertificateBundle {
  // PEM. The first certificate signs; one that it replaced may follow, so that servers which still
  // show the old one stay trusted. Whoever else fills the Secret may leave the CA out (kubectl
  // create secret tls, ACME).
  std::string ca_certificate;
  kube::Secret<std::string> ca_key;
  std::string certificate;
  kube::Secret<std::string> key;

  // What clients of the servers trust. Without a CA that is the server's own certificate: enough
  // where it signed itself, or brings along what signed it.
  const std::string& trusted() const {
    return ca_certificate.empty() ? certificate : ca_certificate;
  }
};

// A server certificate for `hosts` (DNS names or IP addresses), valid for a year, signed by the CA
// of `previous` while that lasts, else by a new CA, valid for ten years. Both are valid from an
// hour before `now`, for clocks that run behind. Keys are P-256.
kube::Result<CertificateBundle> make_certificates(const std::vector<std::string>& hosts,
                                                  kube::Time now,
                                                  const CertificateBundle* previous = nullptr);

// Why clients would not accept the bundle at `now`; empty while it serves. It serves when CA and
// server certificate are valid and belong together, and the latter to its key, and names all
// `hosts`.
std::string reason_not_to_serve(const CertificateBundle& bundle,
                                const std::vector<std::string>& hosts, kube::Time now);

// Why the bundle must be made anew at `now`, for the log; empty while it may stay. It may stay when
// it serves, will do so for 90 more days, and the key of the CA is there.
std::string reason_to_renew(const CertificateBundle& bundle, const std::vector<std::string>& hosts,
                            kube::Time now);

// The Secret's keys tls.crt and tls.key, and ca.crt and ca.key where it holds them; `needs_ca`:
// ca.crt must be there. Errors (kInvalid) name the key that is missing, empty or no base64.
kube::Result<CertificateBundle> read_certificate_secret(const kube::Json& secret, bool needs_ca);
// The same as the Secret's `data`.
kube::Json certificate_secret_data(const CertificateBundle& bundle);

}  // namespace trainer
