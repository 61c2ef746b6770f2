// The client's certificate and key are read again when their files change.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kube/model/secret.hh"

namespace kube {

struct KeyPair {
  std::string certificate_pem;
  Secret<std::string> key_pem;
};

class CertificateSource {
 public:
  using Now = std::chrono::steady_clock::time_point;
  // Both files are set, or both are "".
  CertificateSource(std::string certificate_file, std::string key_file, Now now);
  // Returns whether there are files, which were read a minute ago or earlier.
  bool is_due(Now now) const;
  // Returns the contents of the files; nullopt if there are none, or one cannot be read or is
  // empty.
  std::optional<KeyPair> read(Now now);

 private:
  std::string certificate_file_;
  std::string key_file_;
  Now read_at_;
};

}  // namespace kube
