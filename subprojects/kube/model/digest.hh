// Digests and base64 over OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

std::string sha1_hex(std::string_view data);
std::string sha256_hex(std::string_view data);
std::string sha256_raw(std::string_view data);
// The standard alphabet with padding, on one line. Decoding takes line breaks too (files wrap) and
// nothing else.
std::string base64_encode(std::string_view data);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace kube
