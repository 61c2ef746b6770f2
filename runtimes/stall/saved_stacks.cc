#include "runtimes/stall/saved_stacks.hh"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/model/gzip.hh"
#include "kube/model/json_text.hh"

namespace trainer::stall {
namespace {

using kube::Json;

// Every rank has a few values, and a frame is one.
constexpr kube::JsonLimits kStacksLimits{
    .max_bytes = kMaxStacksText, .max_depth = 8, .max_values = 1'000'000};

std::vector<const Json*> by_importance(const Json& stacks, const Verdict& verdict) {
  std::set<std::int64_t> ranks, suspects, examples;
  for (const Json& each : stacks.get_array("ranks")) ranks.insert(each.get_int("rank"));
  for (const Suspect& each : verdict.suspects) suspects.insert(each.rank);
  for (const Group& group : verdict.groups) {
    const auto at = std::find_if(group.ranks.begin(), group.ranks.end(),
                                 [&](std::int32_t rank) { return ranks.contains(rank); });
    if (at != group.ranks.end()) examples.insert(*at);
  }
  std::vector<const Json*> sorted;
  for (const Json& each : stacks.get_array("ranks")) sorted.push_back(&each);
  const auto place = [&](const Json* each) {
    const std::int64_t rank = each->get_int("rank");
    return std::make_tuple(!suspects.contains(rank), !examples.contains(rank),
                           each->get_bool("waiting"), rank);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const Json* a, const Json* b) { return place(a) < place(b); });
  return sorted;
}

}  // namespace

std::string compressed_stacks(const Json& stacks, const Verdict& verdict, std::size_t limit) {
  constexpr std::size_t kEnd = 100;
  if (stacks.get_array("ranks").empty()) return {};
  kube::GzipWriter writer(limit);
  std::size_t size = kEnd;
  std::size_t taken = 0;
  const auto sorted = by_importance(stacks, verdict);
  for (const Json* const each : sorted) {
    const std::string text = (taken == 0 ? "{\"ranks\":[" : ",\n") + kube::print_json(*each);
    if (size + text.size() > kMaxStacksText || !writer.add(text)) continue;
    size += text.size();
    ++taken;
  }
  if (taken == 0) return {};
  return writer.finish(fmt::format("],\"leftOut\":{}}}\n", sorted.size() - taken));
}

kube::Result<Json> read_compressed_stacks(std::string_view bytes) {
  const auto text = kube::gunzip(bytes, kMaxStacksText);
  if (!text) return tl::unexpected(text.error());
  return kube::parse_json(*text, kStacksLimits);
}

}  // namespace trainer::stall
