// Keeps this process's servers supplied with certificates.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/certificates.hh"
#include "kube/client/notifier.hh"
#include "kube/manager/log.hh"

namespace trainer {

struct CertificateOptions {
  std::vector<std::string> hosts;  // the servers' DNS names or IP addresses
  // If the name is empty, the certificates are kept in this process's memory only (outside the
  // cluster).
  kube::ObjectKey secret;
  // If it is false, another client fills and renews the Secret (certManagement.enable: false).
  bool is_made_here = true;
  kube::Milliseconds poll{30'000};       // the time between two reads of the Secret
  kube::Milliseconds first_poll{2'000};  // the same while there is no certificate yet
  kube::Milliseconds reminder{300'000};  // after this time the same error is logged again
  // A new CA is published this long before the servers use a certificate that it has signed, so
  // that all clients trust it by then. The caBundle of webhooks takes seconds. A ConfigMap that
  // pods have mounted takes up to two and a half minutes after it was written (a kubelet's sync
  // period of 60 to 90 s, and the lifetime of its cache), and each job has one.
  kube::Milliseconds trust_ahead{240'000};
  CertificateOptions() {}
};

// Every replica serves the certificates in the Secret. Only the leader writes it: the leader makes
// the certificates and renews them 90 days before they expire. The Secret is read by its name,
// never listed or watched. Stored certificates are served as long as clients accept them, also
// while they cannot be renewed. If the Secret was deleted or emptied, it is written again with its
// former contents, since clients trust that CA; a new CA is trusted for a while before it is used.
// Concurrency: the io_context thread of the client. Errors: logged when they change; the work is
// tried again.
class CertificateKeeper {
 public:
  // It is called with the first bundle, and with every later one that differs. After an error it is
  // called with the same bundle again.
  using Use = std::function<kube::Task<kube::Result<void>>(kube::CertificateBundle)>;
  // It is called with the CAs that clients must trust from now on (PEM), before they are used.
  using Trust = std::function<void(const std::string& ca_pem)>;
  CertificateKeeper(kube::asio::io_context& io, kube::ApiClient& client, const kube::Log& log,
                    CertificateOptions options, Use use, Trust trust);

  // Runs until it is cancelled.
  kube::Task<void> run();
  // From now on this process may write the Secret.
  void lead();
  // Returns true once a bundle has been delivered.
  bool has_certificate() const { return !delivered_.empty(); }
  // Waits until has_certificate().
  kube::Task<void> wait_for_certificate();

 private:
  // Reads the certificates, renews them if needed, and delivers them.
  kube::Task<kube::Result<void>> sync();
  kube::Task<kube::Result<void>> sync_own();
  kube::Task<kube::Result<void>> renew(kube::Json secret,
                                       kube::Result<kube::CertificateBundle> previous,
                                       std::string reason);
  kube::Task<kube::Result<void>> store(kube::Json secret, kube::CertificateBundle bundle,
                                       std::string reason);
  kube::Task<kube::Result<void>> deliver(kube::CertificateBundle bundle);
  void log_error(const kube::Result<void>& synced);

  kube::ApiClient& client_;
  const kube::Log& log_;
  CertificateOptions options_;
  Use use_;
  Trust trust_;
  kube::Notifier wake_;
  kube::Notifier has_first_;
  bool is_leader_ = false;
  std::string delivered_;  // the certificates delivered last, CA and server
  // The one delivered last; without a Secret: this process's own.
  std::optional<kube::CertificateBundle> last_;
  std::optional<kube::CertificateBundle> next_;  // a bundle of a new CA, trusted but not used yet
  kube::Clock::Steady next_from_{};              // the time from which it is used
  std::string last_error_;                       // the error of the last sync(); "" if it succeeded
  kube::Clock::Steady error_logged_at_{};
};

}  // namespace trainer
