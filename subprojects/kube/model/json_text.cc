#include "kube/model/json_text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "kube/model/json_bytes.hh"
#include "kube/model/numbers.hh"
#include "kube/model/utf8.hh"

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

// A bounded text of our own, in which RapidJSON unescapes strings where they stand: that spares it
// a push for each character. It takes NUL for the end, so a NUL inside the text shows as an end
// before the end.
class ByteStream {
 public:
  using Ch = char;
  // `omitted_levels`: set by whoever reads the member's name; its value is then passed over, unless
  // it has more containers within each other than that.
  ByteStream(std::string& text, std::optional<int>& omitted_levels)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        omitted_levels_(&omitted_levels) {}
  Ch Peek() const { return at_ == end_ ? '\0' : *at_; }
  Ch Take() { return at_ == end_ ? '\0' : *at_++; }
  std::size_t Tell() const { return static_cast<std::size_t>(at_ - begin_); }
  bool at_end() const { return at_ == end_; }

  Ch* PutBegin() { return put_ = at_; }
  // What is written was read before: an escape is never shorter than what it stands for. The NUL
  // that ends a string takes the place of its quotation mark.
  void Put(Ch c) { *put_++ = c; }
  std::size_t PutEnd(const Ch* begin) const { return static_cast<std::size_t>(put_ - begin); }
  void Flush() { std::abort(); }  // serves writing

  // Called between any two tokens.
  void skip_space() {
    while (at_ != end_ && is_json_space(*at_)) ++at_;
    if (*omitted_levels_) skip_value();
  }
  // Takes over what needs no unescaping.
  void copy_plain() {
    const char* const stop = find_string_stop(at_, end_);
    const auto length = static_cast<std::size_t>(stop - at_);
    if (put_ != at_) std::memmove(put_, at_, length);
    put_ += length;
    at_ += length;
  }

 private:
  // Stands before the colon: what follows up to the value's end becomes a 0 there.
  void skip_value() {
    const int levels = *std::exchange(*omitted_levels_, std::nullopt);
    if (at_ == end_ || *at_ != ':') return;
    const char* value = at_ + 1;
    while (value != end_ && is_json_space(*value)) ++value;
    const char* const end = find_value_end(value, end_, levels);
    if (end == nullptr || end == value) return;  // the reader will find what is wrong there
    at_ += end - at_ - 2;
    at_[0] = ':';
    at_[1] = '0';
  }

  char* begin_;
  char* at_;
  char* end_;
  char* put_ = nullptr;
  std::optional<int>* omitted_levels_;
};

}  // namespace
}  // namespace kube

// The two places where RapidJSON lets a stream do better than byte by byte.
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
// then takes the exact number it needs. Each callback answers false to stop the parser, with the
// reason in `problem()`.
class Builder {
 public:
  // `omitted_levels` tells the stream what not to read.
  Builder(const JsonLimits& limits, bool has_unicode_escapes, const JsonSelection& selection,
          std::optional<int>& omitted_levels)
      : max_depth_(limits.max_depth),
        max_values_(limits.max_values),
        has_unicode_escapes_(has_unicode_escapes),
        omitted_levels_(omitted_levels) {
    if (!selection.below.empty()) below_ = &selection;
    values_.reserve(kUsualDepth * 4);
    names_.reserve(kUsualDepth * 4);
    levels_.reserve(kUsualDepth);
  }

  bool Null() { return push(nullptr); }
  bool Bool(bool value) { return push(value); }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return check_text({text, length}) && push(std::string_view(text, length));
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    if (!check_text({text, length})) return false;
    if (!is_left_out({text, length})) names_.emplace_back(text, length);
    return true;
  }
  // RapidJSON takes the number's beginning from a copy of the stream, made before the number. Ours
  // is never copied, for that cost more than what is read between two copies; so it gives the end.
  bool RawNumber(const char* end, rapidjson::SizeType length, bool) {
    // What the stream puts in place of an omitted value.
    if (std::exchange(is_next_omitted_, false)) return true;
    return number({end - length, length});
  }
  bool StartObject() { return enter(false); }
  bool StartArray() {
    if (!enter(true)) return false;
    below_ = levels_.back().selection;
    return true;
  }
  bool EndArray(rapidjson::SizeType count) {
    leave();
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(count);
    Json::Array items(std::make_move_iterator(first), std::make_move_iterator(values_.end()));
    values_.erase(first, values_.end());
    return push(std::move(items));
  }
  bool EndObject(rapidjson::SizeType count) {
    count -= levels_.back().omitted;
    leave();
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
  // Not called: numbers arrive raw, see parse_json().
  bool Int(int) { std::abort(); }
  bool Uint(unsigned) { std::abort(); }
  bool Int64(std::int64_t) { std::abort(); }
  bool Uint64(std::uint64_t) { std::abort(); }
  bool Double(double) { std::abort(); }

  const std::string& problem() const { return problem_; }
  Json take() { return std::move(values_.back()); }

 private:
  template <class Value>
  bool push(Value&& value) {
    if (++pushed_ > max_values_)
      return stop(fmt::format("there are more than {} values", max_values_));
    below_ = !levels_.empty() && levels_.back().is_array ? levels_.back().selection : nullptr;
    values_.emplace_back(std::forward<Value>(value));
    return true;
  }

  // Puts into `order_` in which order the last `count` names come.
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

  bool enter(bool is_array) {
    if (++depth_ > max_depth_)
      return stop(fmt::format("containers are nested deeper than {}", max_depth_));
    is_next_omitted_ = false;
    levels_.push_back({std::exchange(below_, nullptr), 0, is_array});
    return true;
  }

  void leave() {
    --depth_;
    levels_.pop_back();
  }

  // Notes what is selected of the value after this name; true when that is none of it.
  bool is_left_out(std::string_view name) {
    Level& level = levels_.back();
    below_ = nullptr;
    if (!level.selection) return false;
    const bool is_only = level.selection->members == JsonSelection::Members::kOnly;
    const auto& listed = level.selection->below;
    const auto at = std::find_if(listed.begin(), listed.end(), [name, is_only](const auto& each) {
      return each.name == name || (is_only && each.name == "*");
    });
    const bool is_listed = at != listed.end();
    if (is_listed && !at->below.empty()) {
      below_ = &*at;
      return false;
    }
    if (is_listed == is_only) return false;
    ++level.omitted;
    is_next_omitted_ = true;
    omitted_levels_ = max_depth_ - depth_;
    return true;
  }

  // The text as a whole is checked before parsing; only an escape like "\udc00" can still produce
  // bad UTF-8.
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

  // An open container, with what is selected of it and how many members have been left out.
  struct Level {
    const JsonSelection* selection = nullptr;
    rapidjson::SizeType omitted = 0;
    bool is_array = false;
  };

  static constexpr std::size_t kUsualDepth = 16;

  const int max_depth_;
  const std::size_t max_values_;
  const bool has_unicode_escapes_;
  std::optional<int>& omitted_levels_;
  int depth_ = 0;
  std::size_t pushed_ = 0;
  bool is_next_omitted_ = false;          // the value that comes is not built
  const JsonSelection* below_ = nullptr;  // what is selected of the value that comes; null: all
  std::vector<Level> levels_;
  std::vector<Json> values_;
  std::vector<std::string_view> names_;  // they stand in the text, unescaped
  std::vector<std::size_t> order_;       // of the names of the object that ends
  std::string problem_;
};

std::string_view describe(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorNone:
    case rapidjson::kParseErrorTermination:
    case rapidjson::kParseErrorUnspecificSyntaxError:
      break;
    case rapidjson::kParseErrorDocumentEmpty:
      return "there is no value";
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return "there is text after the value";
    case rapidjson::kParseErrorValueInvalid:
      return "expected a value";
    case rapidjson::kParseErrorObjectMissName:
      return "expected a member name in quotes";
    case rapidjson::kParseErrorObjectMissColon:
      return "expected ':' after the member name";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}'";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']'";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return "expected four hexadecimal digits after \\u";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return "a \\u escape names half of a surrogate pair";
    case rapidjson::kParseErrorStringEscapeInvalid:
      return "a bad escape or an unescaped control character in a string";
    case rapidjson::kParseErrorStringMissQuotationMark:
      return "the string is not closed";
    case rapidjson::kParseErrorStringInvalidEncoding:
      return "the string is not UTF-8";
    case rapidjson::kParseErrorNumberTooBig:
      return "the number is out of range";
    case rapidjson::kParseErrorNumberMissFraction:
      return "expected a digit after the decimal point";
    case rapidjson::kParseErrorNumberMissExponent:
      return "expected a digit in the exponent";
  }
  return "the text is no JSON";
}

tl::unexpected<Error> refuse(std::size_t offset, std::string_view what) {
  return fail(ErrorCode::kParse, fmt::format("bad JSON at byte {}: {}", offset, what));
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits,
                        const JsonSelection& selection) {
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kParse, fmt::format("bad JSON: {} bytes, more than the limit of {}",
                                               text.size(), limits.max_bytes));
  }
  if (const std::size_t bad = find_bad_utf8(text); bad != std::string_view::npos)
    return refuse(bad, "the text is not UTF-8");

  // Of RapidJSON 1.1's flags only these two are safe on input that is not trusted: the recursive
  // parser overflows the stack, kParseFullPrecisionFlag and kParseValidateEncodingFlag read out of
  // bounds, and so does the conversion of a number like 0.00000000001e-2147483639 in its default
  // form. Raw numbers skip that conversion; ours is also exact.
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseInsituFlag;
  std::string copy(text);
  std::optional<int> omitted_levels;
  ByteStream stream(copy, omitted_levels);
  Builder builder(limits, text.find("\\u") != text.npos, selection, omitted_levels);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (!builder.problem().empty()) return refuse(result.Offset(), builder.problem());
  if (!stream.at_end() && stream.Peek() == '\0')
    return refuse(stream.Tell(), "the text holds a NUL byte");
  if (result.IsError()) return refuse(result.Offset(), describe(result.Code()));
  return builder.take();
}

}  // namespace kube
