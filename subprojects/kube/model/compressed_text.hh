// Texts that are kept in great numbers and rarely read: deflated (RFC 1951, by zlib) against
// another text of their kind. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kube {

// An immutable text, deflated or as it is. Cheap to copy only where it is deflated.
// Concurrency: as std::string.
class CompressedText {
 public:
  CompressedText() = default;
  // Kept as it is.
  explicit CompressedText(std::string text);
  // Deflated, if that makes it shorter. What `text` repeats of `dictionary` (may be null; its
  // last 32 KiB count) takes almost no space, and the dictionary lives as long as the result.
  static CompressedText deflated(const std::string& text,
                                 std::shared_ptr<const std::string> dictionary);
  // Deflated if that makes it half as long or shorter. It stops early where the part of the text
  // that it has read did not become half as long, since such texts take the longest.
  static CompressedText deflated_if_halved(std::string text);

  std::string text() const;
  // The same, without a copy if the text is not deflated; else it is inflated into `buffer`. Valid
  // as long as this and `buffer`.
  std::string_view text(std::string& buffer) const;
  // Length of the text, in bytes.
  std::size_t size() const { return size_; }
  // How much memory it takes, in bytes, without the dictionary.
  std::size_t stored_size() const { return bytes_.size(); }

 private:
  // Deflated only where that is shorter.
  bool is_deflated() const { return bytes_.size() < size_; }
  std::string bytes_;
  std::shared_ptr<const std::string> dictionary_;
  std::size_t size_ = 0;
};

// Compresses texts that resemble each other, such as the objects of one kind: each against an
// earlier one. 50,000 JobSets made from one runtime take some 100 bytes each, not 2,000.
// Concurrency: one thread; what it made may be read from any.
class TextCompressor {
 public:
  // In bytes. A longer text takes milliseconds to compress, and does not use the dictionary. It is
  // kept uncompressed where compression does not make it half as long.
  static constexpr std::size_t kLong = std::size_t{64} << 10;

  CompressedText compress(std::string text);

 private:
  std::shared_ptr<const std::string> dictionary_;
  std::size_t compressed_ = 0;  // with this dictionary
};

}  // namespace kube
