// Many texts are kept and rarely read. They are deflated (RFC 1951, by zlib) against another text
// of their kind. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kube {

// This is an immutable text, deflated or not. It is cheap to copy only if it is deflated.
// Concurrency: as std::string.
class CompressedText {
 public:
  CompressedText() = default;
  // The text is not deflated.
  explicit CompressedText(std::string text);
  // Returns the text, deflated if that makes it shorter. Parts of `text` that repeat `dictionary`
  // (may be null; its last 32 KiB count) take almost no space. The dictionary lives as long as the
  // result.
  static CompressedText deflated(const std::string& text,
                                 std::shared_ptr<const std::string> dictionary);
  // Returns the text, deflated if that makes it half as long or shorter. It stops early if the
  // first part of the text did not become half as long, since such texts take the longest.
  static CompressedText deflated_if_halved(std::string text);

  std::string text() const;
  // Returns the text, without a copy if it is not deflated; else it is inflated into `buffer`. The
  // result is valid as long as this object and `buffer`.
  std::string_view text(std::string& buffer) const;
  // Returns the length of the text, in bytes.
  std::size_t size() const { return size_; }
  // Returns how much memory it takes, in bytes, without the dictionary.
  std::size_t stored_size() const { return bytes_.size(); }

 private:
  // A text is deflated only if that is shorter.
  bool is_deflated() const { return bytes_.size() < size_; }
  std::string bytes_;
  std::shared_ptr<const std::string> dictionary_;
  std::size_t size_ = 0;
};

// Compresses texts that resemble each other, such as the objects of one kind: each against an
// earlier one. 50,000 JobSets made from one runtime take some 100 bytes each, not 2,000.
// Concurrency: one thread compresses; any thread may read the results.
class TextCompressor {
 public:
  // This is a number of bytes. A longer text takes milliseconds to compress, and does not use the
  // dictionary. It is kept uncompressed if compression does not make it half as long.
  static constexpr std::size_t kLong = std::size_t{64} << 10;

  CompressedText compress(std::string text);

 private:
  std::shared_ptr<const std::string> dictionary_;
  std::size_t compressed_ = 0;  // the number of texts compressed with this dictionary
};

}  // namespace kube
