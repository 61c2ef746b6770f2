#include "kube/model/digest.hh"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <stdexcept>

namespace kube {
namespace {

// Fetched once and kept for good: EVP_sha1() is looked up among the providers at every use, which
// costs more than the digest of a name.
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

// The six bits that a character encodes, or -1.
constexpr std::array<int, 256> make_values() {
  std::array<int, 256> values{};
  for (int& value : values) value = -1;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  return values;
}
constexpr auto kValues = make_values();

}  // namespace

std::string sha1_hex(std::string_view data) {
  static const EVP_MD* const kSha1 = fetch("SHA1");
  return hex(digest(kSha1, data));
}
std::string sha256_hex(std::string_view data) {
  return hex(sha256_raw(data));
}
std::string sha256_raw(std::string_view data) {
  static const EVP_MD* const kSha256 = fetch("SHA256");
  return digest(kSha256, data);
}

std::string base64_encode(std::string_view data) {
  std::string text;
  text.reserve((data.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < data.size(); at += 3) {
    const std::string_view group = data.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string data;
  data.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;            // how many of `bits` wait to become a byte
  std::size_t symbols = 0;  // of the alphabet, and paddings
  std::size_t paddings = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    ++symbols;
    if (c == '=') {
      ++paddings;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || paddings > 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    data += static_cast<char>(bits >> count & 0xff);
  }
  if (symbols % 4 != 0 || paddings > 2) return std::nullopt;
  return data;
}

}  // namespace kube
