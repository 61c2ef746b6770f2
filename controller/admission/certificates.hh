// The certificates of the webhook, metrics and status servers: making them, checking them, and
// their form in a Secret (Kubeflow Trainer, pkg/util/cert).
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
  // PEM. The first certificate is the CA that signs. The CA that it replaced may follow, so that
  // clients still trust servers with an old certificate. Empty where another client fills the
  // Secret without a CA (kubectl create secret tls, ACME).
  std::string ca_certificate;
  kube::Secret<std::string> ca_key;
  std::string certificate;
  kube::Secret<std::string> key;

  // What clients of the servers trust. Without a CA this is the server's own certificate, which is
  // enough where it is self-signed or comes with its chain.
  const std::string& trusted() const {
    return ca_certificate.empty() ? certificate : ca_certificate;
  }
};

// A server certificate for `hosts` (DNS names or IP addresses), valid for a year, signed by the CA
// of `previous` while that is valid, else by a new CA, valid for ten years. Both are valid from an
// hour before `now`, for clocks that run behind. Keys are P-256.
kube::Result<CertificateBundle> make_certificates(const std::vector<std::string>& hosts,
                                                  kube::Time now,
                                                  const CertificateBundle* previous = nullptr);

// Why clients would not accept the bundle at `now`; empty where they would. They accept it when the
// CA and the server certificate are valid, the CA has signed the server certificate, the key
// matches it, and it names all `hosts`.
std::string reason_not_to_serve(const CertificateBundle& bundle,
                                const std::vector<std::string>& hosts, kube::Time now);

// Why the bundle must be renewed at `now`, for the log; empty where it need not. It need not be
// renewed when clients accept it now and for 90 more days, and the key of the CA is there.
std::string reason_to_renew(const CertificateBundle& bundle, const std::vector<std::string>& hosts,
                            kube::Time now);

// When the first certificate of a PEM text ends; nullopt where it cannot be read.
std::optional<kube::Time> expiry_of(const std::string& certificate_pem);

// Whether make_certificates() would sign with the CA of `bundle` instead of making another.
bool has_usable_ca(const CertificateBundle& bundle, kube::Time now);

// The Secret's keys tls.crt and tls.key, and ca.crt and ca.key where it holds them; `needs_ca`:
// ca.crt must be there. Errors (kInvalid) name the key that is missing, empty or not base64.
kube::Result<CertificateBundle> read_certificate_secret(const kube::Json& secret, bool needs_ca);
// The same as the Secret's `data`.
kube::Json certificate_secret_data(const CertificateBundle& bundle);

}  // namespace trainer
