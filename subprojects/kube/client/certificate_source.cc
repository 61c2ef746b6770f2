#include "kube/client/certificate_source.hh"

#include <fstream>
#include <iterator>
#include <utility>

namespace kube {

namespace {

constexpr std::chrono::minutes kCheckEvery{1};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

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
  KeyPair pair{text_of(certificate_file_), Secret<std::string>(text_of(key_file_))};
  if (pair.certificate_pem.empty() || pair.key_pem.reveal().empty()) return std::nullopt;
  return pair;
}

}  // namespace kube
