// The certificates of the webhook, metrics and status servers are made and checked here; they have
// a form in a Secret (Kubeflow Trainer, pkg/util/cert).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace kube {

struct CertificateBundle {
  // This is PEM. The first certificate is the CA that signs. The CA that it replaced may follow, so
  // that clients still trust servers with an old certificate. It is empty if another client fills
  // the Secret without a CA (kubectl create secret tls, ACME).
  std::string ca_certificate;
  Secret<std::string> ca_key;
  std::string certificate;
  Secret<std::string> key;

  // Returns what clients of the servers trust. Without a CA this is the server's own certificate,
  // which is enough if it is self-signed or comes with its chain.
  const std::string& trusted() const {
    return ca_certificate.empty() ? certificate : ca_certificate;
  }
};

// Makes a server certificate for `hosts` (DNS names or IP addresses), valid for a year, signed by
// the CA of `previous` while that is valid, else by a new CA, valid for ten years. Both are valid
// from an hour before `now`, for clocks that run behind. Keys are P-256.
Result<CertificateBundle> make_certificates(const std::vector<std::string>& hosts, Time now,
                                            const CertificateBundle* previous = nullptr);

// Returns why clients would not accept the bundle at `now`; empty if they would. They accept it if
// the CA and the server certificate are valid, the CA has signed the server certificate, the key
// matches it, and it names all `hosts`.
std::string reason_not_to_serve(const CertificateBundle& bundle,
                                const std::vector<std::string>& hosts, Time now);

// Returns why the bundle must be renewed at `now`, for the log; empty if it need not. It need not
// be renewed if clients accept it now and for 90 more days, and it has the key of the CA.
std::string reason_to_renew(const CertificateBundle& bundle, const std::vector<std::string>& hosts,
                            Time now);

// Returns when the first certificate of a PEM text ends; nullopt if it cannot be read.
std::optional<Time> expiry_of(const std::string& certificate_pem);

// Returns whether make_certificates() would sign with the CA of `bundle` instead of making another.
bool has_usable_ca(const CertificateBundle& bundle, Time now);

// Reads the Secret's keys tls.crt and tls.key, and ca.crt and ca.key if it holds them; `needs_ca`
// says that ca.crt must exist. Errors (kInvalid) name the key that is missing, empty or not base64.
Result<CertificateBundle> read_certificate_secret(const Json& secret, bool needs_ca);
// Returns the same as the Secret's `data`.
Json certificate_secret_data(const CertificateBundle& bundle);

}  // namespace kube
