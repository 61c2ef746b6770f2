// Digests and base64 are computed by OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

std::string sha1_hex(std::string_view data);
std::string sha1_raw(std::string_view data);
std::string sha256_hex(std::string_view data);
std::string sha256_raw(std::string_view data);
// Base64 uses the standard alphabet with padding, on one line. Decoding also accepts line breaks
// (files wrap) and nothing else.
std::string base64_encode(std::string_view data);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace kube
