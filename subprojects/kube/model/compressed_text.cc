#include "kube/model/compressed_text.hh"

// zlib then declares as const the data that it only reads.
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

namespace kube {
namespace {

// A text that does not shrink to a quarter is not similar to its dictionary. It becomes the new
// dictionary.
constexpr std::size_t kGoodRatio = 4;
// Only one of so many texts becomes a dictionary, at most. Dictionaries are not deflated, so this
// keeps their share of the memory small, even if no two texts are similar.
constexpr std::size_t kTrial = 64;

// Returns the base-2 logarithm of deflate's window, 9 to 15: no wider than dictionary and text
// together. Inflating needs the same number, so it depends on sizes alone.
int window_bits(std::size_t dictionary, std::size_t text) {
  return static_cast<int>(std::clamp<std::size_t>(std::bit_width(dictionary + text), 9, 15));
}

// This much of a long text is deflated, to see whether it shrinks: a millisecond of work.
constexpr std::size_t kPart = std::size_t{64} << 10;

// These streams work in memory only, so they fail only without memory, or because of a bug.
void must(int code, int desired, const char* what) {
  if (code == desired) return;
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  throw std::logic_error(std::string("zlib: ") + what + ": error " + std::to_string(code));
}

// This ends a stream that is on the stack.
using Ending = std::unique_ptr<z_stream, int (*)(z_stream*)>;
using SetDictionary = int (*)(z_stream*, const Bytef*, uInt);
using Step = int (*)(z_stream*, int);

// Passes all of `in` through the stream in one step. At most `limit` bytes come out.
std::string run(z_stream& stream, SetDictionary set_dictionary, Step step, const std::string& in,
                const std::string& dictionary, std::size_t limit) {
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<const Bytef*>(text.data());
  };
  if (!dictionary.empty()) {
    must(set_dictionary(&stream, bytes(dictionary), static_cast<uInt>(dictionary.size())), Z_OK,
         "the dictionary");
  }
  std::string out(limit, '\0');
  stream.next_in = bytes(in);
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  must(step(&stream, Z_FINISH), Z_STREAM_END, "the text");
  out.resize(out.size() - stream.avail_out);
  return out;
}

std::string deflate_all(const std::string& text, const std::string& dictionary) {
  z_stream stream{};
  const int bits = window_bits(dictionary.size(), text.size());
  // Smaller windows use less memory: setting up the stream is most of the work for a short text.
  const int memory = std::clamp(bits - 7, 1, 9);
  must(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -bits, memory, Z_DEFAULT_STRATEGY), Z_OK,
       "deflateInit2");
  const Ending ending(&stream, deflateEnd);
  return run(stream, deflateSetDictionary, deflate, text, dictionary,
             deflateBound(&stream, text.size()));
}

// Returns nullopt if the text does not shrink to a half.
std::optional<std::string> deflate_to_half(const std::string& text) {
  z_stream stream{};
  const int bits = window_bits(0, text.size());
  must(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -bits, 9, Z_DEFAULT_STRATEGY), Z_OK,
       "deflateInit2");
  const Ending ending(&stream, deflateEnd);
  std::string out(text.size() / 2, '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  for (std::size_t done = 0; done < text.size();) {
    const std::size_t part = std::min(kPart, text.size() - done);
    done += part;
    stream.avail_in = static_cast<uInt>(part);
    const bool is_last = done == text.size();
    const int code = deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    const bool is_good = code == (is_last ? Z_STREAM_END : Z_OK) && stream.avail_in == 0 &&
                         stream.total_out <= done / 2;
    if (!is_good) return std::nullopt;
  }
  out.resize(stream.total_out);
  return out;
}

std::string inflate_all(const std::string& bytes, const std::string& dictionary, std::size_t size) {
  z_stream stream{};
  must(inflateInit2(&stream, -window_bits(dictionary.size(), size)), Z_OK, "inflateInit2");
  const Ending ending(&stream, inflateEnd);
  return run(stream, inflateSetDictionary, inflate, bytes, dictionary, size);
}

const std::string& text_or_none(const std::shared_ptr<const std::string>& text) {
  static const std::string kNone;
  return text ? *text : kNone;
}

}  // namespace

CompressedText::CompressedText(std::string text) : bytes_(std::move(text)), size_(bytes_.size()) {
  bytes_.shrink_to_fit();
}

CompressedText CompressedText::deflated(const std::string& text,
                                        std::shared_ptr<const std::string> dictionary) {
  CompressedText compressed(deflate_all(text, text_or_none(dictionary)));
  if (compressed.stored_size() >= text.size()) return CompressedText(text);
  compressed.dictionary_ = std::move(dictionary);
  compressed.size_ = text.size();
  return compressed;
}

CompressedText CompressedText::deflated_if_halved(std::string text) {
  auto bytes = deflate_to_half(text);
  if (!bytes) return CompressedText(std::move(text));
  CompressedText compressed(std::move(*bytes));
  compressed.size_ = text.size();
  return compressed;
}

std::string_view CompressedText::text(std::string& buffer) const {
  if (!is_deflated()) return bytes_;
  buffer = inflate_all(bytes_, text_or_none(dictionary_), size_);
  return buffer;
}

std::string CompressedText::text() const {
  std::string buffer;
  return std::string(text(buffer));
}

CompressedText TextCompressor::compress(std::string text) {
  if (text.size() > kLong) return CompressedText::deflated_if_halved(std::move(text));
  CompressedText compressed = CompressedText::deflated(text, dictionary_);
  ++compressed_;
  const bool is_tried = !dictionary_ || compressed_ >= kTrial;
  if (is_tried && compressed.stored_size() > text.size() / kGoodRatio) {
    dictionary_ = std::make_shared<const std::string>(std::move(text));
    compressed_ = 0;
  }
  return compressed;
}

}  // namespace kube
