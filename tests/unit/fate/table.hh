// These fields are set without an effect and without a message, on purpose. A row may be removed,
// and none may be added that hides a fault: its reason says who else acts on the field, or whose
// the name is. A row whose field is used or named by now fails the test.
#pragma once

#include <span>
#include <string_view>

namespace trainer::fate {

struct UnusedField {
  std::string_view kind;     // the kind of the document, by the test case's name
  std::string_view path;     // the end of Field::path(), or all of it
  std::string_view subject;  // the one runtime or kind; "" for all
  std::string_view reason;
};
std::span<const UnusedField> unused_fields();

// Names that belong to a controller, also where others write them.
struct OwnedName {
  std::string_view kind;
  std::string_view member;  // the member of the same name in Name
  std::string_view prefix;  // the prefix of the key
  std::string_view reason;
};
std::span<const OwnedName> owned_names();

}  // namespace trainer::fate
