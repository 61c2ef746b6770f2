// This decides who may use the API of local mode, and at which port: one token, one certificate
// authority, one port, all kept in the state directory.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "kube/client/certificates.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"
#include "kube/server/request.hh"
#include "local/server/state_directory.hh"

namespace trainer {

// Clients with the token have this user name.
inline constexpr const char* kLocalUser = "local";

struct Access {
  kube::Secret<std::string> token;
  kube::CertificateBundle certificates;  // the certificates for 127.0.0.1 and localhost

  // Returns whether an Authorization header has the token; compared in constant time.
  bool is_granted(std::string_view authorization) const;
  // Answers a TokenReview (authentication.k8s.io/v1).
  kube::server::Response review(const kube::Json& token_review) const;
};

// Reads token and certificates from the state directory, or makes them and stores them there;
// certificates that expire soon are made again. Errors (kInvalid): a file that another user could
// have written, or that cannot be written or parsed.
kube::Result<Access> load_access(const StateDirectory& state, kube::Time now);

// These files have the ports of the API and of the server to which pods report.
inline constexpr const char* kPortFile = "port";
inline constexpr const char* kReportsPortFile = "reports-port";
// Returns the port that keep_port() has stored; 0 if there is none yet.
unsigned short kept_port(const StateDirectory& state, const char* file = kPortFile);
kube::Result<void> keep_port(const StateDirectory& state, unsigned short port,
                             const char* file = kPortFile);

// Calls `listen(port)`, whose result converts to bool, with the port of an earlier daemon. The port
// of one that was killed is free a moment after its lock, so it is tried for a second. If another
// program has it, or if `kept` is 0, the port is any free one.
template <class Listen>
auto listen_on_kept(unsigned short kept, const Listen& listen) {
  auto listening = listen(kept);
  for (int tries = 0; !listening && kept != 0 && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    listening = listen(kept);
  }
  if (!listening && kept != 0) listening = listen(0);
  return listening;
}

// Returns a kubeconfig for these clients, as YAML. `address` is "https://HOST:PORT".
std::string kubeconfig_of(const Access& access, const std::string& address);

}  // namespace trainer
