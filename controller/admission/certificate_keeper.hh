// Keeps this process's servers supplied with certificates.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controller/admission/certificates.hh"
#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "kube/manager/log.hh"

namespace trainer {

struct CertificateOptions {
  std::vector<std::string> hosts;  // what the servers are called by
  // Empty name: the certificates live and die with this process (outside the cluster).
  kube::ObjectKey secret;
  // False: somebody else fills and renews the Secret (certManagement.enable: false); it is only
  // followed.
  bool is_made_here = true;
  kube::Milliseconds poll{30'000};       // how soon a change of the Secret is noticed
  kube::Milliseconds first_poll{2'000};  // the same while there is no certificate yet
  kube::Milliseconds reminder{300'000};  // an error that lasts is logged again
  CertificateOptions() {}
};

// Every replica serves what the Secret holds; only the leader writes it: makes the certificates,
// and renews them 90 days before they end. The Secret is read by its name alone, never listed or
// watched. What is stored serves for as long as clients accept it, also while it cannot be renewed.
// Concurrency: the io_context thread of the client. Errors: logged when they change, and tried
// again.
class CertificateKeeper {
 public:
  // Told of the first bundle and of every other one that differs. After an error the same bundle is
  // offered again.
  using Use = std::function<kube::Result<void>(const CertificateBundle&)>;
  CertificateKeeper(kube::asio::io_context& io, kube::ApiClient& client, const kube::Log& log,
                    CertificateOptions options, Use use);

  // Until cancelled.
  kube::Task<void> run();
  // From now on this process may write the Secret.
  void lead();
  // True once a bundle has been handed over.
  bool has_certificate() const { return !used_.empty(); }
  // Until has_certificate().
  kube::Task<void> wait_for_certificate();

 private:
  kube::Task<kube::Result<void>> look();
  kube::Result<void> look_at_own();
  kube::Task<kube::Result<void>> renew(kube::Json secret, kube::Result<CertificateBundle> previous,
                                       std::string reason);
  kube::Result<void> hand_over(const CertificateBundle& bundle);
  void note(const kube::Result<void>& looked);

  kube::ApiClient& client_;
  const kube::Log& log_;
  CertificateOptions options_;
  Use use_;
  kube::Notifier wake_;
  kube::Notifier has_first_;
  bool is_leader_ = false;
  std::string used_;                      // the certificates handed over last, CA and server
  std::optional<CertificateBundle> own_;  // without a Secret
  std::string complaint_;                 // the error of the last look
  kube::Clock::Steady complained_at_{};
};

}  // namespace trainer
