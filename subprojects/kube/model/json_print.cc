#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"
#include "kube/model/utf8.hh"

namespace kube {
namespace {

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& value) {
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      write_int(value.as_int());
    } else if (value.is_double()) {
      write_double(value.as_double());
    } else if (value.is_string()) {
      write_string(value.as_string());
    } else if (value.is_array()) {
      write_array(value.as_array());
    } else {
      write_object(value.as_object());
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void write_int(std::int64_t number) {
    char digits[24];
    out_.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
  }

  void write_double(double number) {
    // JSON has no word for infinity; no parser here produces one.
    out_ += std::isfinite(number) ? print_double(number, DoubleStyle::kLiteral) : "null";
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
      write_escape(static_cast<unsigned char>(*stop));
      at = stop + 1;
    }
    out_ += '"';
  }

  // Strings made by programs may hold anything; a document may hold UTF-8 only.
  std::string& append_repaired(std::string_view text) {
    for (auto bad = find_bad_utf8(text); bad != text.npos; bad = find_bad_utf8(text)) {
      out_.append(text.substr(0, bad));
      out_ += "\xef\xbf\xbd";  // U+FFFD, the replacement character
      text.remove_prefix(bad + 1);
    }
    return out_.append(text);
  }

  void write_escape(unsigned char c) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      default:
        fmt::format_to(std::back_inserter(out_), "\\u{:04x}", c);
    }
  }

  void write_array(const Json::Array& items) {
    out_ += '[';
    ++depth_;
    bool first = true;
    for (const Json& item : items) {
      separate(first);
      write(item);
    }
    close(items.empty(), ']');
  }

  void write_object(const Json::Object& members) {
    out_ += '{';
    ++depth_;
    bool first = true;
    for (const auto& [name, value] : members) {
      separate(first);
      write_string(name);
      out_ += indent_ > 0 ? ": " : ":";
      write(value);
    }
    close(members.empty(), '}');
  }

  void separate(bool& first) {
    if (!first) out_ += ',';
    first = false;
    new_line();
  }

  void close(bool empty, char bracket) {
    --depth_;
    if (!empty) new_line();
    out_ += bracket;
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

}  // namespace

std::string print_json(const Json& value) {
  Writer writer(0);
  writer.write(value);
  return writer.take();
}

std::string print_json_pretty(const Json& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

}  // namespace kube
