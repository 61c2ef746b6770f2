#include "kube/model/json_text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "kube/model/json_bytes.hh"
#include "kube/model/numbers.hh"

// RapidJSON's stack adds to a null pointer on its first push, which the undefined behaviour
// sanitizer reports.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/reader.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace kube {
namespace {

// This is a bounded text of its own, in which RapidJSON unescapes strings in place: so it need not
// push each character. RapidJSON takes NUL for the end, so a NUL inside the text shows as an end
// before the end.
class ByteStream {
 public:
  using Ch = char;
  explicit ByteStream(std::string& text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}
  Ch Peek() const { return at_ == end_ ? '\0' : *at_; }
  Ch Take() { return at_ == end_ ? '\0' : *at_++; }
  std::size_t Tell() const { return static_cast<std::size_t>(at_ - begin_); }
  bool at_end() const { return at_ == end_; }

  Ch* PutBegin() { return put_ = at_; }
  // The written place was read before: an escape is never shorter than what it encodes. The NUL
  // that ends a string replaces its quotation mark.
  void Put(Ch c) { *put_++ = c; }
  std::size_t PutEnd(const Ch* begin) const { return static_cast<std::size_t>(put_ - begin); }
  void Flush() { std::abort(); }  // RapidJSON calls it for writing only

  void skip_space() {
    while (at_ != end_ && is_json_space(*at_)) ++at_;
  }

  void copy_plain() {
    const char* const stop = find_string_stop(at_, end_);
    const auto length = static_cast<std::size_t>(stop - at_);
    if (put_ != at_) std::memmove(put_, at_, length);
    put_ += length;
    at_ += length;
  }

 private:
  char* begin_;
  char* at_;
  char* end_;
  char* put_ = nullptr;
};

}  // namespace
}  // namespace kube

// At these two places RapidJSON lets a stream do better than byte by byte.
template <>
inline void rapidjson::SkipWhitespace(kube::ByteStream& stream) {
  stream.skip_space();
}
template <>
template <>
inline void
rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>,
                         rapidjson::CrtAllocator>::ScanCopyUnescapedString(kube::ByteStream& in,
                                                                           kube::ByteStream&) {
  in.copy_plain();
}

namespace kube {
namespace {

// Builds the value bottom up: finished values wait on one stack until their container closes, which
// then takes the exact number it needs. Each callback returns false to stop the parser, with the
// reason in `problem()`. Numbers arrive raw, see parse_in_place().
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  Builder(const JsonLimits& limits, bool has_unicode_escapes)
      : max_depth_(limits.max_depth),
        max_values_(limits.max_values),
        has_unicode_escapes_(has_unicode_escapes) {
    values_.reserve(kUsualOpen);
    names_.reserve(kUsualOpen);
  }

  bool Null() { return push(nullptr); }
  bool Bool(bool value) { return push(value); }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return check_text({text, length}) && push(std::string_view(text, length));
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    if (!check_text({text, length})) return false;
    names_.emplace_back(text, length);
    return true;
  }
  // For other streams RapidJSON passes the number's beginning, from a copy of the stream that it
  // made before the number. This stream is never copied, since a copy costs more than reading the
  // bytes between two copies. So RapidJSON passes the number's end.
  bool RawNumber(const char* end, rapidjson::SizeType length, bool) {
    return number({end - length, length});
  }
  bool StartObject() { return enter(); }
  bool StartArray() { return enter(); }
  bool EndArray(rapidjson::SizeType count) {
    --depth_;
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(count);
    Json::Array items(std::make_move_iterator(first), std::make_move_iterator(values_.end()));
    values_.erase(first, values_.end());
    return push(std::move(items));
  }
  bool EndObject(rapidjson::SizeType count) {
    --depth_;
    sort_names(count);
    const std::size_t first_value = values_.size() - count;
    const std::size_t first_name = names_.size() - count;
    JsonObject::Members members;
    members.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view name = names_[first_name + order_[i]];
      if (i > 0 && members.back().first == name)
        return stop(
            fmt::format("the object ending here has the member {} twice", print_json(name)));
      members.emplace_back(name, std::move(values_[first_value + order_[i]]));
    }
    values_.resize(first_value);
    names_.resize(first_name);
    return push(JsonObject::of_sorted(std::move(members)));
  }

  const std::string& problem() const { return problem_; }
  Json take() { return std::move(values_.back()); }

 private:
  template <class Value>
  bool push(Value&& value) {
    if (++pushed_ > max_values_)
      return stop(fmt::format("there are more than {} values", max_values_));
    values_.emplace_back(std::forward<Value>(value));
    return true;
  }

  // Puts the order of the last `count` names into `order_`.
  void sort_names(std::size_t count) {
    const std::string_view* const names = names_.data() + (names_.size() - count);
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto before = [names](std::size_t a, std::size_t b) { return names[a] < names[b]; };
    if (!std::is_sorted(order_.begin(), order_.end(), before))
      std::sort(order_.begin(), order_.end(), before);
  }

  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool enter() {
    return ++depth_ <= max_depth_ ||
           stop(fmt::format("containers are nested deeper than {}", max_depth_));
  }

  // The whole text is checked before parsing. Only an escape like "\udc00" can still produce bad
  // UTF-8.
  bool check_text(std::string_view text) {
    return !has_unicode_escapes_ || is_utf8(text) ||
           stop("a \\u escape names half of a surrogate pair");
  }

  bool number(std::string_view text) {
    const char* const end = text.data() + text.size();
    if (text.find_first_of(".eE") == text.npos) {
      std::int64_t integer = 0;
      if (std::from_chars(text.data(), end, integer).ec == std::errc()) return push(integer);
    }
    const auto real = parse_double(text);
    return real ? push(*real) : stop("the number is out of range");
  }

  static constexpr std::size_t kUsualOpen = 64;  // values in containers not closed yet

  const int max_depth_;
  const std::size_t max_values_;
  const bool has_unicode_escapes_;
  int depth_ = 0;
  std::size_t pushed_ = 0;
  std::vector<Json> values_;
  std::vector<std::string_view> names_;  // they are views of the text, unescaped
  std::vector<std::size_t> order_;       // the order of the names of the object that ends
  std::string problem_;
};

constexpr std::pair<rapidjson::ParseErrorCode, std::string_view> kProblems[] = {
    {rapidjson::kParseErrorDocumentEmpty, "there is no value"},
    {rapidjson::kParseErrorDocumentRootNotSingular, "there is text after the value"},
    {rapidjson::kParseErrorValueInvalid, "expected a value"},
    {rapidjson::kParseErrorObjectMissName, "expected a member name in quotes"},
    {rapidjson::kParseErrorObjectMissColon, "expected ':' after the member name"},
    {rapidjson::kParseErrorObjectMissCommaOrCurlyBracket, "expected ',' or '}'"},
    {rapidjson::kParseErrorArrayMissCommaOrSquareBracket, "expected ',' or ']'"},
    {rapidjson::kParseErrorStringUnicodeEscapeInvalidHex,
     "expected four hexadecimal digits after \\u"},
    {rapidjson::kParseErrorStringUnicodeSurrogateInvalid,
     "a \\u escape names half of a surrogate pair"},
    {rapidjson::kParseErrorStringEscapeInvalid,
     "a bad escape or an unescaped control character in a string"},
    {rapidjson::kParseErrorStringMissQuotationMark, "the string is not closed"},
    {rapidjson::kParseErrorStringInvalidEncoding, "the string is not UTF-8"},
    {rapidjson::kParseErrorNumberTooBig, "the number is out of range"},
    {rapidjson::kParseErrorNumberMissFraction, "expected a digit after the decimal point"},
    {rapidjson::kParseErrorNumberMissExponent, "expected a digit in the exponent"}};

std::string_view describe(rapidjson::ParseErrorCode code) {
  const auto* const at = std::ranges::find(
      kProblems, code, &std::pair<rapidjson::ParseErrorCode, std::string_view>::first);
  return at == std::end(kProblems) ? "the text is no JSON" : at->second;
}

tl::unexpected<Error> refuse(std::size_t offset, std::string_view what) {
  return fail(ErrorCode::kParse, "bad JSON at byte {}: {}", offset, what);
}

// Parses a text that is UTF-8; strings are unescaped in place.
Result<Json> parse_in_place(std::string text, const JsonLimits& limits) {
  // Only these two flags of RapidJSON 1.1 are safe on input that is not trusted. The recursive
  // parser overflows the stack. kParseFullPrecisionFlag and kParseValidateEncodingFlag read out of
  // bounds, and so does the conversion of a number like 0.00000000001e-2147483639 in its default
  // form. Raw numbers skip that conversion; the one here is also exact.
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseInsituFlag;
  ByteStream stream(text);
  Builder builder(limits, text.find("\\u") != text.npos);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (!builder.problem().empty()) return refuse(result.Offset(), builder.problem());
  if (!stream.at_end() && stream.Peek() == '\0')
    return refuse(stream.Tell(), "the text holds a NUL byte");
  if (result.IsError()) return refuse(result.Offset(), describe(result.Code()));
  return builder.take();
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits, const JsonFilter& filter) {
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kParse, "bad JSON: {} bytes, more than the limit of {}", text.size(),
                limits.max_bytes);
  }
  if (const std::size_t bad = find_bad_utf8(text); bad != std::string_view::npos)
    return refuse(bad, "the text is not UTF-8");
  if (!filter.below.empty()) {
    if (auto selected = filter_json(text, filter, limits.max_depth)) {
      if (auto value = parse_in_place(std::move(*selected), limits)) return value;
    }
    // An error and its place are known when the whole text is read.
  }
  return parse_in_place(std::string(text), limits);
}

}  // namespace kube
