// MPI jobs get SSH key pairs.
#pragma once

#include <string>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"

namespace trainer {

struct SshKeyPair {
  kube::Secret<std::string> private_key;  // PEM, "EC PRIVATE KEY" (SEC1), without a passphrase
  std::string public_key;  // one authorized_keys line, "ecdsa-sha2-nistp521 AAAA...\n"
};

// Makes a new pair and puts it into the `data` of a Secret of type kubernetes.io/ssh-auth. A plan
// has no random numbers: it says which Secrets need a pair. Errors: those of make_ssh_key_pair().
kube::Result<void> add_ssh_key_pair(kube::Json& secret);

// Makes a new ECDSA key on P-521 (Kubeflow Trainer, pkg/runtime/framework/plugins/mpi). It takes
// about a millisecond. Errors: kInternal if OpenSSL fails, for example without entropy.
kube::Result<SshKeyPair> make_ssh_key_pair();

}  // namespace trainer
