// JSON text is read without decoding it: the parts of the lines of a watch and of lists, and those
// that a JsonFilter keeps. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kube {

// Steps through the members or items of the container that `text` begins with; the text after it is
// not read. `levels` is how many containers there may be within each other in a member or item.
// Values are delimited by their brackets and strings alone, and none is read twice.
//
//   JsonCursor members(text);
//   while (members.next()) if (members.name() == "kind") return members.value();
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text, int levels = std::numeric_limits<int>::max());

  // Goes on to the next one. Returns false behind the last one, and if the text is not complete.
  bool next();
  // Returns the name as it is spelled, with its escapes; "" for an item of an array.
  std::string_view name() const { return name_; }
  // Returns the text from the value on, which is not empty.
  std::string_view rest() const { return {value_, static_cast<std::size_t>(end_ - value_)}; }
  // Returns the value's text; nullopt if it is not complete or is too deep.
  std::optional<std::string_view> value();
  // A caller that has read the value itself and knows its length calls this.
  void skip(std::size_t length) { at_ = value_ + length; }

  // Returns the whole container's length, once next() has returned false; nullopt if it is not
  // complete.
  std::optional<std::size_t> length() const;

 private:
  void skip_space();
  bool take(char c);
  bool take_name();

  const char* begin_;
  const char* end_;
  const char* at_;               // behind all that has been read
  const char* value_ = nullptr;  // the begin of the value; `at_` until its end is known
  std::string_view name_;
  int levels_;
  bool is_object_ = false;
  bool is_good_ = false;    // another one may come
  bool is_closed_ = false;  // the end has come
};

// A filter says which parts of a document are kept, as a tree of member names. Most bytes of a
// watched object, such as managedFields, are often not needed. A filter without members keeps
// everything. For an array, a filter applies to each item; an array within an array is kept whole.
// Names are not copied.
struct JsonFilter {
  enum class Members {
    kExclude,  // a member that is listed below without members of its own is left out
    kInclude,  // members that are not listed below are left out; "*" means every name
  };
  std::string_view name;  // the member's name; not read in the filter of the document itself
  Members members = Members::kExclude;
  std::vector<JsonFilter> below;
};

// Returns the text that the filter keeps; it is as valid as that part of `text` was. The result is
// nullopt if `text` is not one single value by its brackets and strings, or has more than
// `max_depth` containers within each other, also in parts that are left out. Linear in the text;
// recurses with the filter only.
std::optional<std::string> filter_json(std::string_view text, const JsonFilter& filter,
                                       int max_depth);

}  // namespace kube
