#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"
#include "kube/model/visible_text.hh"

namespace kube {
namespace {

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string print(const Json& value) {
    write(value);
    return std::move(out_);
  }

 private:
  void write(const Json& value) {
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      char digits[24];
      out_.append(digits, std::to_chars(std::begin(digits), std::end(digits), value.as_int()).ptr);
    } else if (value.is_double()) {
      // JSON has no word for infinity; no parser here produces one.
      const double number = value.as_double();
      out_ += std::isfinite(number) ? print_double(number, DoubleStyle::kLiteral) : "null";
    } else if (value.is_string()) {
      write_string(value.as_string());
    } else if (value.is_array()) {
      write_all("[]", value.as_array(), [this](const Json& item) { write(item); });
    } else {
      write_all("{}", value.as_object(), [this](const auto& member) { write_member(member); });
    }
  }

  void write_string(std::string_view text) {
    out_ += '"';
    const bool is_text = is_utf8(text);
    const char* at = text.data();
    const char* const end = at + text.size();
    for (;;) {
      const char* const stop = find_string_stop(at, end);
      const std::string_view plain(at, static_cast<std::size_t>(stop - at));
      is_text ? out_.append(plain) : append_repaired(plain);
      if (stop == end) break;
      write_escape(*stop);
      at = stop + 1;
    }
    out_ += '"';
  }

  // Strings made by programs may hold anything. A document may hold only UTF-8.
  std::string& append_repaired(std::string_view text) {
    for (auto bad = find_bad_utf8(text); bad != text.npos; bad = find_bad_utf8(text)) {
      out_.append(text.substr(0, bad));
      out_ += "\xef\xbf\xbd";  // U+FFFD, the replacement character
      text.remove_prefix(bad + 1);
    }
    return out_.append(text);
  }

  void write_escape(char c) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    if (const std::size_t at = kEscaped.find(c); at != kEscaped.npos) {
      out_.append(1, '\\').append(1, "\"\\nrtbf"[at]);
    } else {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned char>(c));
    }
  }

  template <class Items, class WriteItem>
  void write_all(std::string_view brackets, const Items& items, const WriteItem& write_item) {
    out_ += brackets[0];
    ++depth_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) out_ += ',';
      new_line();
      write_item(item);
    }
    --depth_;
    if (!items.empty()) new_line();
    out_ += brackets[1];
  }

  void write_member(const JsonObject::Member& member) {
    write_string(member.first);
    out_ += indent_ > 0 ? ": " : ":";
    write(member.second);
  }

  void new_line() {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * depth_, ' ');
  }

  const int indent_;  // 0: everything on one line
  std::size_t depth_ = 0;
  std::string out_;
};

// JSON has escapes of 16 bits only. All hidden characters are in strings.
std::string with_hidden_escaped(std::string json) {
  if (visible_text(json) == json) return json;
  std::string out;
  for (std::string_view rest = json; !rest.empty();) {
    const Character next = first_character(rest);
    const auto code = static_cast<std::uint32_t>(next.code);
    if (!next.is_hidden)
      out += rest.substr(0, next.bytes);
    else if (code < 0x10000)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
    else
      fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}",
                     0xd800 + ((code - 0x10000) >> 10U), 0xdc00 + ((code - 0x10000) & 0x3ffU));
    rest.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace

std::string print_json(const Json& value) {
  return Writer(0).print(value);
}

std::string print_json_pretty(const Json& value) {
  return with_hidden_escaped(Writer(2).print(value));
}

}  // namespace kube
