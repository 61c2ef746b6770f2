#include "kube/model/packed_text.hh"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <utility>

namespace kube {
namespace {

// A text that does not shrink to a quarter resembles its dictionary little ...
constexpr std::size_t kGoodRatio = 4;
// ... and takes its place, but not more often than this: dictionaries are kept as they are, and so
// they are a small share of all texts even where no two are alike.
constexpr std::size_t kTrial = 64;

// The base-2 logarithm of deflate's window, 9 to 15: no wider than what there is to look back at.
// Inflating needs the same, so it depends on sizes alone.
int window_bits(std::size_t dictionary, std::size_t text) {
  return static_cast<int>(std::clamp<std::size_t>(std::bit_width(dictionary + text), 9, 15));
}

// zlib takes what it only reads as mutable, too.
Bytef* bytes_of(const std::string& text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

// These streams work on memory alone, so only its lack and bugs make them fail.
void must(int code, int wanted, const char* what) {
  if (code == wanted) return;
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  throw std::logic_error(std::string("zlib: ") + what + ": error " + std::to_string(code));
}

class Deflater {
 public:
  explicit Deflater(int bits) {
    // Less memory for smaller windows: setting up the stream is most of the work for a short text.
    const int memory = std::clamp(bits - 7, 1, 9);
    must(deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, -bits, memory, Z_DEFAULT_STRATEGY), Z_OK,
         "deflateInit2");
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

class Inflater {
 public:
  explicit Inflater(int bits) { must(inflateInit2(&stream_, -bits), Z_OK, "inflateInit2"); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

std::string deflate_all(const std::string& text, const std::string& dictionary) {
  Deflater deflater(window_bits(dictionary.size(), text.size()));
  z_stream& stream = deflater.stream();
  if (!dictionary.empty()) {
    must(deflateSetDictionary(&stream, bytes_of(dictionary), static_cast<uInt>(dictionary.size())),
         Z_OK, "deflateSetDictionary");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = bytes_of(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  must(deflate(&stream, Z_FINISH), Z_STREAM_END, "deflate");
  out.resize(out.size() - stream.avail_out);
  return out;
}

std::string inflate_all(const std::string& bytes, const std::string& dictionary, std::size_t size) {
  Inflater inflater(window_bits(dictionary.size(), size));
  z_stream& stream = inflater.stream();
  if (!dictionary.empty()) {
    must(inflateSetDictionary(&stream, bytes_of(dictionary), static_cast<uInt>(dictionary.size())),
         Z_OK, "inflateSetDictionary");
  }
  std::string out(size, '\0');
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  must(inflate(&stream, Z_FINISH), Z_STREAM_END, "inflate");
  return out;
}

const std::string& text_or_none(const std::shared_ptr<const std::string>& text) {
  static const std::string kNone;
  return text ? *text : kNone;
}

}  // namespace

PackedText::PackedText(std::string text) : bytes_(std::move(text)) {
  bytes_.shrink_to_fit();
}

PackedText PackedText::deflated(std::string text, std::shared_ptr<const std::string> dictionary) {
  PackedText packed(deflate_all(text, text_or_none(dictionary)));
  if (packed.bytes_.size() >= text.size()) return PackedText(std::move(text));
  packed.dictionary_ = std::move(dictionary);
  packed.size_ = text.size();
  packed.is_deflated_ = true;
  return packed;
}

std::string PackedText::text() const {
  return is_deflated_ ? inflate_all(bytes_, text_or_none(dictionary_), size_) : bytes_;
}

PackedText TextPacker::pack(std::string text) {
  if (text.size() > kLongest) return PackedText(std::move(text));
  PackedText packed = PackedText::deflated(text, dictionary_);
  ++packed_;
  const bool is_tried = !dictionary_ || packed_ >= kTrial;
  if (is_tried && packed.kept() > text.size() / kGoodRatio) {
    dictionary_ = std::make_shared<const std::string>(std::move(text));
    packed_ = 0;
  }
  return packed;
}

}  // namespace kube
