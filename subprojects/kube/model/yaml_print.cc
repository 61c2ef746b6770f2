#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/visible_text.hh"
#include "kube/model/yaml.hh"
#include "kube/model/yaml_scalar.hh"

namespace kube {
namespace {

// A YAML reader may take these characters beyond ASCII for line breaks or byte order marks, or drop
// them. The second member is the escaped form.
constexpr std::pair<std::string_view, std::string_view> kSpecial[] = {{"\u2028", "\\u2028"},
                                                                      {"\u2029", "\\u2029"},
                                                                      {"\ufeff", "\\ufeff"},
                                                                      {"\ufffe", "\\ufffe"},
                                                                      {"\uffff", "\\uffff"}};

bool has_special_characters(std::string_view text) {
  const auto occurs = [&](const auto& special) { return text.find(special.first) != text.npos; };
  if (std::ranges::any_of(kSpecial, occurs)) return true;
  // These are U+0080 to U+009F.
  for (std::size_t at = text.find('\xc2'); at != text.npos; at = text.find('\xc2', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0) return true;
  }
  return !is_utf8(text);
}

// Quotes with double quotes and JSON's escapes; characters that JSON allows and YAML does not are
// escaped too.
std::string quote(std::string_view text) {
  const std::string json = print_json(Json(text));
  std::string quoted;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto c = static_cast<unsigned char>(json[i]);
    const std::string_view rest = std::string_view(json).substr(i);
    if (c == 0x7f) {
      quoted += "\\x7f";
    } else if (c == 0xc2 && static_cast<unsigned char>(rest[1]) < 0xa0) {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(rest[1]));
      i += 1;
    } else if (const auto special = std::ranges::find_if(
                   kSpecial, [&](const auto& each) { return rest.starts_with(each.first); });
               special != std::end(kSpecial)) {
      quoted += special->second;
      i += 2;
    } else {
      quoted += json[i];
    }
  }
  return quoted;
}

bool has_hidden_characters(std::string_view text) {
  return !is_plain_line(text) && visible_text(std::string(text)) != text;
}

std::string print_text(std::string_view text) {
  return is_plain_safe(text) && !has_special_characters(text) ? std::string(text) : quote(text);
}

// Returns whether a literal block holds exactly this text: several lines of printable text, where
// the first shows the indentation.
bool fits_literal(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == ' ' || text.front() == '\t' ||
      text.front() == '\n')
    return false;
  const auto is_unprintable = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
  };
  return std::none_of(text.begin(), text.end(), is_unprintable) && !has_special_characters(text);
}

// `value` is no text.
std::string print_scalar(const Json& value) {
  if (!value.is_double()) return print_json(value);
  const double number = value.as_double();
  const auto as_read = as_json_number(value);
  // Without the tag the reader takes 1.0 for the integer, as kubectl does.
  const std::string text = print_json(value);
  return as_read && as_read->is_int() && std::isfinite(number) ? "!!float " + text : text;
}

class Printer {
 public:
  explicit Printer(bool is_visible) : is_visible_(is_visible) {}

  // Writes a value behind "key:", "-" or nothing. `indent` is that of the lines that follow. In a
  // sequence the value begins on the line of the "-" ("- a: 1").
  void write(const Json& value, std::size_t indent, bool in_sequence) {
    if (value.is_object() && !value.empty()) {
      write_mapping(value.as_object(), indent, in_sequence);
    } else if (value.is_array() && !value.empty()) {
      write_sequence(value.as_array(), indent, in_sequence);
    } else if (value.is_string() && fits_literal(value.as_string()) &&
               !is_escaped(value.as_string())) {
      write_literal(value.as_string(), indent);
    } else {
      out_ += value.is_string() ? text(value.as_string()) : print_scalar(value);
      out_ += '\n';
    }
  }
  std::string take() { return std::move(out_); }

 private:
  // Longer names need the form "? name\n: value".
  static constexpr std::size_t kLongestSimpleName = 1000;

  bool is_escaped(std::string_view of) const { return is_visible_ && has_hidden_characters(of); }
  std::string text(std::string_view of) const {
    return is_escaped(of) ? visible_text(quote(of)) : print_text(of);
  }

  void write_mapping(const Json::Object& members, std::size_t indent, bool on_line) {
    for (const auto& [name, value] : members) {
      if (!on_line) out_.append(indent, ' ');
      on_line = false;
      const std::string key = text(name);
      if (key.size() > kLongestSimpleName) {
        out_ += "? " + key + "\n";
        out_.append(indent, ' ');
        out_ += ':';
      } else {
        out_ += key + ':';
      }
      write_member_value(value, indent);
    }
  }

  void write_member_value(const Json& value, std::size_t indent) {
    const bool is_block = (value.is_object() || value.is_array()) && !value.empty();
    out_ += is_block ? '\n' : ' ';
    // kubectl prints in the same way: the items of a list are in the column of the list's name.
    write(value, value.is_array() ? indent : indent + 2, false);
  }

  void write_sequence(const Json::Array& items, std::size_t indent, bool on_line) {
    for (const Json& item : items) {
      if (!on_line) out_.append(indent, ' ');
      on_line = false;
      out_ += "- ";
      write(item, indent + 2, true);
    }
  }

  void write_literal(std::string_view text, std::size_t indent) {
    const std::size_t last = text.find_last_not_of('\n');
    const std::size_t breaks = text.size() - last - 1;
    out_ += breaks == 0 ? "|-\n" : breaks == 1 ? "|\n" : "|+\n";
    const std::size_t column = std::max<std::size_t>(indent, 2);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end > 0) out_.append(column, ' ');
      out_.append(text.substr(0, end));
      out_ += '\n';
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  const bool is_visible_;
  std::string out_;
};

std::string print(const Json& value, bool is_visible) {
  Printer printer(is_visible);
  printer.write(value, 0, false);
  return printer.take();
}

}  // namespace

std::string print_yaml(const Json& value) {
  return print(value, false);
}

std::string print_visible_yaml(const Json& value) {
  return print(value, true);
}

}  // namespace kube
