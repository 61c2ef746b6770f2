#include "kube/model/gzip.hh"

// zlib then declares as const the data that it only reads.
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace kube {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the format's largest window, and gzip's header
constexpr int kGzipMemory = 8;        // zlib's default
// A flush adds some bytes, and so does the end.
constexpr std::size_t kFlush = 64;
constexpr std::size_t kStep = std::size_t{64} << 10;

// Without memory the streams fail, and otherwise only because of a bug.
void must_be_ok(int code) {
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code != Z_OK) throw std::logic_error("zlib: error " + std::to_string(code));
}

const Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

z_stream* begin_gzip() {
  auto stream = std::make_unique<z_stream>();
  must_be_ok(deflateInit2(stream.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kGzipMemory,
                          Z_DEFAULT_STRATEGY));
  return stream.release();
}

void end_gzip(z_stream* stream) {
  deflateEnd(stream);
  delete stream;
}

}  // namespace

GzipWriter::GzipWriter(std::size_t limit) : limit_(limit), stream_(begin_gzip(), end_gzip) {}

bool GzipWriter::add(std::string_view part) {
  const std::size_t end = deflateBound(stream_.get(), kMaxEnd) + kFlush;
  if (bytes_.size() + deflateBound(stream_.get(), part.size()) + kFlush + end > limit_)
    return false;
  write(part, Z_SYNC_FLUSH);
  return true;
}

std::string GzipWriter::finish(std::string_view end) {
  write(end, Z_FINISH);
  return std::move(bytes_);
}

void GzipWriter::write(std::string_view part, int flush) {
  z_stream& stream = *stream_;
  stream.next_in = bytes_of(part);
  stream.avail_in = static_cast<uInt>(part.size());
  do {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(bytes_.data() + before);
    stream.avail_out = static_cast<uInt>(kStep);
    const int code = deflate(&stream, flush);
    if (code != Z_STREAM_END && code != Z_BUF_ERROR) must_be_ok(code);
    bytes_.resize(bytes_.size() - stream.avail_out);
  } while (stream.avail_out == 0);
}

Result<std::string> gunzip(std::string_view bytes, std::size_t limit) {
  z_stream stream{};
  must_be_ok(inflateInit2(&stream, kGzipWindow));
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ending(&stream, inflateEnd);
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(std::min(before + kStep, limit + 1));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = static_cast<uInt>(text.size() - before);
    const int code = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    if (text.size() > limit)
      return fail(ErrorCode::kInvalid, "the text is longer than {} bytes", limit);
    if (code == Z_STREAM_END) return text;
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    // Without progress the text is cut.
    if (code != Z_OK || text.size() == before)
      return fail(ErrorCode::kInvalid, "the text is not of gzip's format, or is cut");
  }
}

}  // namespace kube
