// Texts in the format of gzip (RFC 1952), which other programs read. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kube/model/error.hh"

struct z_stream_s;

namespace kube {

// Compresses a text part by part, and never beyond a limit. Concurrency: as std::string.
class GzipWriter {
 public:
  // This many bytes always have room in finish().
  static constexpr std::size_t kMaxEnd = 100;

  // `limit`: the bytes of the result; at least 1 KiB.
  explicit GzipWriter(std::size_t limit);

  // Returns false, and leaves the part out, if the result might become longer than the limit. Parts
  // that are left out are at most as long, compressed, as the room that stays unused.
  bool add(std::string_view part);
  // Adds `end`, of at most kMaxEnd bytes, and returns the result. It is the last call.
  std::string finish(std::string_view end);

 private:
  void write(std::string_view part, int flush);

  const std::size_t limit_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::string bytes_;
};

// Errors (kInvalid): `bytes` is not of this format, or its text is longer than `limit`.
Result<std::string> gunzip(std::string_view bytes, std::size_t limit);

}  // namespace kube
