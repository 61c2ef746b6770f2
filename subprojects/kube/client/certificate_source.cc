#include "kube/client/certificate_source.hh"

#include <utility>

#include "kube/client/read_file.hh"

namespace kube {

namespace {

constexpr std::chrono::minutes kCheckEvery{1};

}  // namespace

CertificateSource::CertificateSource(std::string certificate_file, std::string key_file, Now now)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      read_at_(now) {}

bool CertificateSource::is_due(Now now) const {
  return !certificate_file_.empty() && now - read_at_ >= kCheckEvery;
}

std::optional<KeyPair> CertificateSource::read(Now now) {
  if (certificate_file_.empty()) return std::nullopt;
  read_at_ = now;
  KeyPair pair{read_file(certificate_file_).value_or(""),
               Secret<std::string>(read_file(key_file_).value_or(""))};
  if (pair.certificate_pem.empty() || pair.key_pem.reveal().empty()) return std::nullopt;
  return pair;
}

}  // namespace kube
