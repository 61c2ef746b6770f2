// Checks of lists that users write share these functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace kube {

// Further errors would help no one, and an object may have a hundred thousand items.
inline constexpr std::size_t kMaxErrors = 200;
// An admission answer has at most this many warnings. The API server passes on 4 KiB of them at
// most (apiserver, admission/plugin/webhook).
inline constexpr std::size_t kMaxWarnings = 32;

// Calls `check(item, path)` for the items of a list of `owner`, which is at `path`, until there are
// kMaxErrors.
template <class Check>
void check_items(const Json& owner, std::string_view list, std::string_view path,
                 const FieldErrors& errors, const Check& check) {
  const std::string at = join_field(path, list);
  const Json::Array& items = owner.get_array(list);
  for (std::size_t i = 0; i < items.size() && errors.size() < kMaxErrors; ++i)
    check(items[i], join_index(at, i));
}

}  // namespace kube
