// SSH key pairs for MPI jobs.
#pragma once

#include <string>

#include "kube/model/error.hh"
#include "kube/model/secret.hh"

namespace trainer {

struct SshKeyPair {
  kube::Secret<std::string> private_key;  // PEM, "EC PRIVATE KEY" (SEC1), without a passphrase
  std::string public_key;  // one authorized_keys line, "ecdsa-sha2-nistp521 AAAA...\n"
};

// A fresh ECDSA key on P-521 (trainer-contract 5.2). Takes about a millisecond. Errors: kInternal
// when OpenSSL refuses, for want of entropy say.
kube::Result<SshKeyPair> make_ssh_key_pair();

}  // namespace trainer
