// This is the only writer of HTML. Texts and values of attributes are escaped, and everything else
// is a literal of this program that the compiler checks. No function writes markup from a text.
// Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainer::ui {

// This is the name of an element or of an attribute. Attributes that a browser could run as code,
// or load from, are no names: Address has a function for each.
class Name {
 public:
  consteval Name(const char* text) : text_(text) {
    for (const char c : text_)
      if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != 'B')
        throw "a name has lower case letters, digits and hyphens, or is viewBox";
    for (const std::string_view code : {"href", "src", "srcdoc", "style", "action", "formaction"})
      if (text_ == code) throw "this attribute takes an Address";
    if (text_.starts_with("on") || text_.empty()) throw "this attribute would be a script";
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// This is a page of this server.
class Page {
 public:
  consteval Page(const char* text) : text_(text) {
    for (const char c : text_)
      if (!(c >= 'a' && c <= 'z') && c != '.' && c != '/') throw "this is no page of this server";
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// This is the address of a page, relative to any other one. Values of parameters are encoded.
class Address {
 public:
  explicit Address(Page page) : page_(page.text()) {}
  // Adds a parameter.
  Address with(Name name, std::string_view value) const;
  std::string text() const;

 private:
  std::string_view page_;
  std::vector<std::pair<std::string_view, std::string>> parameters_;
};

struct Attribute {
  Attribute(Name name_, std::string_view value_) : name(name_.text()), value(value_) {}
  static Attribute href(const Address& address) { return of("href", address); }
  static Attribute src(const Address& address) { return of("src", address); }
  static Attribute action(const Address& address) { return of("action", address); }

  std::string_view name;
  std::string value;

 private:
  Attribute() = default;
  static Attribute of(std::string_view name, const Address& address) {
    Attribute made;
    made.name = name;
    made.value = address.text();
    return made;
  }
};

class Html {
 public:
  using Attributes = std::initializer_list<Attribute>;

  // Opens an element; end() closes the innermost one that is open.
  Html& begin(Name name, Attributes attributes = {});
  Html& end();
  // Writes an element that HTML does not close, such as <meta>.
  Html& single(Name name, Attributes attributes);
  // Writes a whole element with a text.
  Html& element(Name name, std::string_view text, Attributes attributes = {});
  // Characters that one does not see become visible, too.
  Html& text(std::string_view text);
  // Returns the document; all elements that are open are closed.
  std::string take();

 private:
  std::string out_;
  std::vector<std::string_view> open_;
};

}  // namespace trainer::ui
