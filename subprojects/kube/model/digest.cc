#include "kube/model/digest.hh"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

namespace kube {
namespace {

// Each digest is fetched once and kept: EVP_sha1() is looked up among the providers at every use,
// which costs more than the digest of a name.
const EVP_MD* fetch(const char* name) {
  return EVP_MD_fetch(nullptr, name, nullptr);
}

std::string digest(const EVP_MD* algorithm, std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> buffer;
  unsigned size = 0;
  if (!algorithm ||
      EVP_Digest(data.data(), data.size(), buffer.data(), &size, algorithm, nullptr) != 1)
    throw std::runtime_error(
        "OpenSSL offers no SHA-1 or SHA-256; is a restricted provider loaded?");
  return std::string(reinterpret_cast<const char*>(buffer.data()), size);
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

std::string sha1_hex(std::string_view data) {
  return hex(sha1_raw(data));
}
std::string sha1_raw(std::string_view data) {
  static const EVP_MD* const kSha1 = fetch("SHA1");
  return digest(kSha1, data);
}
std::string sha256_hex(std::string_view data) {
  return hex(sha256_raw(data));
}
std::string sha256_raw(std::string_view data) {
  static const EVP_MD* const kSha256 = fetch("SHA256");
  return digest(kSha256, data);
}

std::string base64_encode(std::string_view data) {
  const std::size_t size = (data.size() + 2) / 3 * 4;
  std::string text(size + 1, '\0');  // OpenSSL writes a NUL behind it
  EVP_EncodeBlock(bytes_of(text), bytes_of(data), static_cast<int>(data.size()));
  text.resize(size);
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string symbols;
  std::ranges::remove_copy_if(text, std::back_inserter(symbols),
                              [](char c) { return c == '\n' || c == '\r'; });
  // OpenSSL also accepts spaces, and paddings anywhere.
  const std::size_t end = std::min(symbols.find_first_not_of(kAlphabet), symbols.size());
  const std::size_t paddings = symbols.size() - end;
  if (symbols.size() % 4 != 0 || paddings > 2 ||
      symbols.find_first_not_of('=', end) != symbols.npos)
    return std::nullopt;
  std::string data(symbols.size() / 4 * 3, '\0');
  EVP_DecodeBlock(bytes_of(data), bytes_of(symbols), static_cast<int>(symbols.size()));
  data.resize(data.size() - paddings);
  return data;
}

}  // namespace kube
