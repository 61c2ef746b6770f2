// Another program prints these credentials: `exec` of a kubeconfig's user (client-go,
// plugin/pkg/client/auth/exec; group client.authentication.k8s.io, versions v1 and v1beta1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace kube {

struct ExecConfig {
  enum class Interactive { kNever, kIfAvailable, kAlways };

  std::string api_version;
  std::string command;  // a name of $PATH, or a path
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to this process's variables
  std::string install_hint;
  Interactive interactive = Interactive::kIfAvailable;
  bool has_cluster_info = false;
  Json cluster;  // the cluster in KUBERNETES_EXEC_INFO, with has_cluster_info
};

// Reads the member `exec` of a user. Errors (kInvalid) name the field below it.
Result<ExecConfig> read_exec_config(const Json& exec);

struct ExecCredential {
  Secret<std::string> token;  // a token, a certificate with its key, or both
  std::string client_certificate_pem;
  Secret<std::string> client_key_pem;
  std::optional<Time> expires;  // nullopt: it expires when the API server answers 401
};

// Reads the output of a plugin. Errors (kInvalid) quote none of it.
Result<ExecCredential> read_exec_credential(std::string_view api_version, std::string_view output);

// Keeps the credential of one user until it expires. Concurrency: one thread, which is blocked
// while the command runs, without a limit: the command may wait for its user. So only subcommands
// use it.
class ExecPlugin {
 public:
  explicit ExecPlugin(ExecConfig config) : config_(std::move(config)) {}
  // Runs the command if there is no credential or it has expired. Its standard error is this
  // process's. Errors (kInvalid) name the command, how it ended, and the install hint.
  Result<void> renew(Time now);
  // The API server refused the credential: the next renew() runs the command.
  void expire() { is_good_ = false; }
  const ExecCredential& credential() const { return credential_; }
  // Returns how often the command has answered.
  std::uint64_t generation() const { return generation_; }

 private:
  Result<ExecCredential> run() const;
  ExecConfig config_;
  ExecCredential credential_;
  std::uint64_t generation_ = 0;
  bool is_good_ = false;
};

}  // namespace kube
