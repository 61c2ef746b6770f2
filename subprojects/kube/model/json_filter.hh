// Cutting the parts of interest out of JSON text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kube {

// Which parts of a document are of interest, as a tree of member names. Of a watched object most
// bytes are often of none, such as managedFields. Without members below it a selection takes
// everything. Of an array it says what is taken of each item; an array within an array is taken
// whole. Names are not copied.
struct JsonFilter {
  enum class Members {
    kExclude,  // of what is listed below, a member with nothing below it is left out
    kInclude,  // what is not listed below is left out; "*" stands for every name
  };
  std::string_view name;  // of the member this is about; not looked at in the document's own
  Members members = Members::kExclude;
  std::vector<JsonFilter> below;
};

// The text of what is selected; it is as valid as that part of `text` was. nullopt where `text` is
// no single value as far as its brackets and strings tell, or has more than `max_depth` containers
// within each other, be it in what is left out. Linear in the text; recurses with the selection
// only.
std::optional<std::string> filter_json(std::string_view text, const JsonFilter& filter,
                                       int max_depth);

}  // namespace kube
