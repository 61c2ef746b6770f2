// Steps through the members of an object, or the items of an array, in JSON text, without decoding
// anything. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

namespace kube {

// Of the container that `text` begins with; what follows it does not matter. `levels`: how many
// containers there may be within each other in a member or item. Values are judged by their
// brackets and strings alone, and none is looked at twice.
//
//   JsonChildren members(text);
//   while (members.next()) if (members.name() == "kind") return members.value();
class JsonChildren {
 public:
  explicit JsonChildren(std::string_view text, int levels = std::numeric_limits<int>::max());

  // Goes on to the next one. False behind the last, and where the text breaks off.
  bool next();
  // As it is spelled, escapes and all; "" for an item of an array.
  std::string_view name() const { return name_; }
  // The text from the value on, which is not empty.
  std::string_view rest() const { return {value_, static_cast<std::size_t>(end_ - value_)}; }
  // The value's text; nullopt where it breaks off or is too deep.
  std::optional<std::string_view> value();
  // For whoever has found out alone how long the value is.
  void pass(std::size_t length) { at_ = value_ + length; }

  // The whole container's length, once next() has been false; nullopt where it breaks off.
  std::optional<std::size_t> length() const;

 private:
  void skip_space();
  bool take(char c);
  bool take_name();

  const char* begin_;
  const char* end_;
  const char* at_;               // behind all that has been read
  const char* value_ = nullptr;  // where the value begins; `at_` until its end is known
  std::string_view name_;
  int levels_;
  bool is_object_ = false;
  bool is_good_ = false;    // another one may come
  bool is_closed_ = false;  // the end has come
};

}  // namespace kube
