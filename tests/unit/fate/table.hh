// What is set without an effect and without a message, on purpose. A row may go, and none may come
// that hides a fault: its reason says who else acts on the field, or whose the name is. A row whose
// field is used or named by now fails the test.
#pragma once

#include <span>
#include <string_view>

namespace trainer::fate {

struct UnusedField {
  std::string_view kind;     // of the document, as the test case calls it
  std::string_view path;     // the end of Field::path(), or all of it
  std::string_view subject;  // the one runtime or kind; "" for all
  std::string_view reason;
};
std::span<const UnusedField> unused_fields();

// Names that belong to a controller, also where others write them.
struct OwnedName {
  std::string_view kind;
  std::string_view member;  // as in Name
  std::string_view prefix;  // of the key
  std::string_view reason;
};
std::span<const OwnedName> owned_names();

}  // namespace trainer::fate
