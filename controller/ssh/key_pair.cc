#include "controller/ssh/key_pair.hh"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/encoder.h>
#include <openssl/pem.h>

#include <array>
#include <cstdint>

#include "kube/client/openssl.hh"
#include "kube/model/digest.hh"

namespace trainer {
namespace {

// The name is that of RFC 5656 section 3.1 and RFC 4253 section 6.6.
constexpr std::string_view kKeyType = "ecdsa-sha2-nistp521";
constexpr std::string_view kCurveName = "nistp521";
// A point is 0x04, then two coordinates of 66 bytes.
constexpr std::size_t kPointSize = 133;

// Appends an SSH string: its length in four bytes, then its bytes (RFC 4251 section 5).
void append_string(std::string& blob, std::string_view value) {
  const auto size = static_cast<std::uint32_t>(value.size());
  for (const int shift : {24, 16, 8, 0}) blob.push_back(static_cast<char>((size >> shift) & 0xffU));
  blob.append(value);
}

kube::Result<std::string> authorized_keys_line(EVP_PKEY* key) {
  std::array<unsigned char, kPointSize> point{};
  std::size_t size = 0;
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(),
                                      &size) != 1 ||
      size != point.size()) {
    return kube::openssl_error("cannot read the public part of an SSH key");
  }
  std::string blob;
  append_string(blob, kKeyType);
  append_string(blob, kCurveName);
  append_string(blob, std::string_view(reinterpret_cast<const char*>(point.data()), point.size()));
  return std::string(kKeyType) + " " + kube::base64_encode(blob) + "\n";
}

// "type-specific" is OpenSSL's name for SEC1, which old versions of OpenSSH read, too.
kube::Result<std::string> sec1_pem(EVP_PKEY* key) {
  using EncoderPtr = std::unique_ptr<OSSL_ENCODER_CTX, kube::OpensslFree<OSSL_ENCODER_CTX_free>>;
  const EncoderPtr encoder(
      OSSL_ENCODER_CTX_new_for_pkey(key, EVP_PKEY_KEYPAIR, "PEM", "type-specific", nullptr));
  const kube::BioPtr out = kube::memory_bio();
  if (!encoder || !out || OSSL_ENCODER_to_bio(encoder.get(), out.get()) != 1) {
    return kube::openssl_error("cannot encode an SSH key");
  }
  return kube::text_of(out.get());
}

}  // namespace

kube::Result<SshKeyPair> make_ssh_key_pair() {
  const kube::PkeyPtr key(EVP_EC_gen("P-521"));
  if (!key) return kube::openssl_error("cannot generate an SSH key");
  auto line = authorized_keys_line(key.get());
  if (!line) return tl::unexpected(line.error());
  auto pem = sec1_pem(key.get());
  if (!pem) return tl::unexpected(pem.error());
  return SshKeyPair{kube::Secret<std::string>(std::move(*pem)), std::move(*line)};
}

kube::Result<void> add_ssh_key_pair(kube::Json& secret) {
  const auto pair = make_ssh_key_pair();
  if (!pair) return tl::unexpected(pair.error());
  secret["data"]
      .set("ssh-privatekey", kube::base64_encode(pair->private_key.reveal()))
      .set("ssh-publickey", kube::base64_encode(pair->public_key));
  return {};
}

}  // namespace trainer
