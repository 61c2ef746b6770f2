// The client's certificate and key, as fresh as their files.
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
  // Both files, or "" for both where there are none.
  CertificateSource(std::string certificate_file, std::string key_file, Now now);
  // Whether there are files, which were read a minute ago or earlier.
  bool is_due(Now now) const;
  // What the files hold; nullopt where there are none, or one cannot be read or is empty.
  std::optional<KeyPair> read(Now now);

 private:
  std::string certificate_file_;
  std::string key_file_;
  Now read_at_;
};

}  // namespace kube
