// The stacks of a stall, as they are kept with the job: compressed, and cut to what an object may
// hold. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "runtimes/stall/verdict.hh"

namespace trainer::stall {

inline constexpr std::size_t kMaxSavedStacks = 256U << 10;  // bytes of the compressed form
inline constexpr std::size_t kMaxStacksText = 4U << 20;     // bytes of the JSON

// `stacks` is Watch::stacks(). The result is JSON in gzip's format: {"ranks": [...], "leftOut":
// COUNT}. Where there is no room for all, the suspects stay, then one rank of each group of the
// verdict, then those that do not wait in a collective; the ranks are in this order. It is "" if
// there are no stacks.
std::string compressed_stacks(const kube::Json& stacks, const Verdict& verdict,
                              std::size_t limit = kMaxSavedStacks);

// Errors (kInvalid): the bytes are not of that form, or too large.
kube::Result<kube::Json> read_compressed_stacks(std::string_view bytes);

}  // namespace trainer::stall
