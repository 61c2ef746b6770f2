// The client has the address of the API server, and the credentials for it.
#pragma once

#include <memory>
#include <string>

#include "kube/client/exec_plugin.hh"
#include "kube/model/error.hh"
#include "kube/model/secret.hh"

namespace kube {

struct ClientConfig {
  std::string server;           // "https://host:port", perhaps with a path
  std::string tls_server_name;  // empty: the host of `server`
  bool insecure_skip_tls_verify = false;
  std::string ca_pem;  // empty: the system's CAs
  std::string client_certificate_pem;
  Secret<std::string> client_key_pem;
  // If both come from files, they are read again when these change.
  std::string client_certificate_file;
  std::string client_key_file;
  Secret<std::string> token;
  std::string token_file;  // read again when it changes; wins over `token` once it can be read
  std::shared_ptr<ExecPlugin> exec_plugin;  // makes the token or certificate; null without one
  std::string ns = "default";               // the context's namespace, or the pod's
  std::string user_agent = "trainer";
};

// `path` empty: $KUBECONFIG, then in-cluster (not if a context is named, since a pod has none),
// then ~/.kube/config. A person's program (`ExecUsers::kAllowed`) takes the file before the
// in-cluster configuration, like kubectl. `context` empty: current-context. If $KUBECONFIG has
// several files, separated by ":", the first that has an entry or sets current-context counts, and
// those that do not exist are skipped. Relative paths inside are taken from the folder of their
// file. Errors name the file and the missing or wrong entry, including values of another type.
// Auth-provider users are refused with the reason, and exec users unless they are allowed. If a
// user has a token beside `exec`, the token counts.
enum class ExecUsers { kRefused, kAllowed };
Result<ClientConfig> load_config(const std::string& path, const std::string& context = "",
                                 ExecUsers exec_users = ExecUsers::kRefused);
// Reads the service account that Kubernetes mounts into pods. The error is kNotFound outside of a
// pod.
Result<ClientConfig> in_cluster_config();

}  // namespace kube
