// The stacks that matter are kept where there is no room for all.
#include "runtimes/stall/saved_stacks.hh"

#include <random>

#include "kube/model/gzip.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

namespace trainer::stall::test {
namespace {

using kube::Json;
using Kept = std::vector<std::int64_t>;

// A rank whose frames do not resemble those of others.
Json stacks_of_rank(std::int32_t rank, bool is_waiting, std::size_t frames) {
  std::mt19937 random(static_cast<std::uint32_t>(rank));
  Json lines = Json::array();
  for (std::size_t i = 0; i < frames; ++i) {
    std::string line = "/app/";
    for (int letter = 0; letter < 150; ++letter)
      line.push_back(static_cast<char>('a' + random() % 26));
    lines.push_back(std::move(line));
  }
  const Json thread = Json::object({{"name", "MainThread"},
                                    {"main", true},
                                    {"state", "S"},
                                    {"wchan", "futex"},
                                    {"frames", std::move(lines)}});
  return Json::object({{"threads", Json::array({thread})},
                       {"children", Json::array()},
                       {"rank", std::int64_t{rank}},
                       {"pod", "pod"},
                       {"node", "machine"},
                       {"waiting", is_waiting}});
}

Json stacks_of_ranks(std::int32_t count, const std::set<std::int32_t>& busy, std::size_t frames) {
  Json ranks = Json::array();
  for (std::int32_t rank = 0; rank < count; ++rank)
    ranks.push_back(stacks_of_rank(rank, !busy.contains(rank), frames));
  return Json::object({{"ranks", std::move(ranks)}});
}

Verdict verdict_of(const std::vector<std::int32_t>& suspects, std::vector<Group> groups = {}) {
  Verdict verdict;
  for (const std::int32_t rank : suspects) verdict.suspects.emplace_back().rank = rank;
  verdict.groups = std::move(groups);
  return verdict;
}

Kept kept_ranks(const std::string& bytes) {
  const auto stacks = read_compressed_stacks(bytes);
  REQUIRE(stacks);
  Kept ranks;
  for (const Json& rank : stacks->get_array("ranks")) ranks.push_back(rank.get_int("rank"));
  return ranks;
}

TEST_CASE("all stacks are kept where there is room, the suspects first", "[stall]") {
  const Json stacks = stacks_of_ranks(8, {3, 5, 7}, 20);
  const Verdict verdict =
      verdict_of({5}, {{"train.py:1 f", 5, {0, 1, 2, 4, 6}}, {"data.py:2 g", 2, {3, 7}}});
  const std::string bytes = compressed_stacks(stacks, verdict);
  CHECK(kept_ranks(bytes) == Kept{5, 3, 0, 7, 1, 2, 4, 6});
  const auto read = read_compressed_stacks(bytes);
  CHECK(read->get_int("leftOut") == 0);
  CHECK(read->get_array("ranks")[0] == stacks.get_array("ranks")[5]);
}

TEST_CASE("where there is no room, those that wait like others are left out first", "[stall]") {
  struct Row {
    const char* what;
    std::size_t limit;
    Kept kept;
  };
  // The stacks of a rank take some 2.5 KB.
  const Row rows[] = {
      {"a suspect", 6'000, {5}},
      {"and one of each group", 10'500, {5, 3, 0}},
      {"and others that do not wait", 13'000, {5, 3, 0, 7}},
      {"nothing", 1'500, {}},
  };
  const Verdict verdict =
      verdict_of({5}, {{"train.py:1 f", 5, {0, 1, 2, 4, 6}}, {"data.py:2 g", 2, {3, 7}}});
  for (const Row& row : rows) {
    INFO(row.what);
    const std::string bytes =
        compressed_stacks(stacks_of_ranks(8, {3, 5, 7}, 25), verdict, row.limit);
    CHECK(bytes.size() <= row.limit);
    if (row.kept.empty()) {
      CHECK(bytes.empty());
      continue;
    }
    CHECK(kept_ranks(bytes) == row.kept);
    CHECK(read_compressed_stacks(bytes)->get_int("leftOut") ==
          8 - static_cast<std::int64_t>(row.kept.size()));
  }
}

TEST_CASE("the most that a job can have is cut to the bounds", "[stall]") {
  const Json stacks = stacks_of_ranks(256, {200}, 300);
  const std::string bytes = compressed_stacks(stacks, verdict_of({200}));
  CHECK(bytes.size() <= kMaxSavedStacks);
  CHECK(bytes.size() > kMaxSavedStacks / 2);
  CHECK(kept_ranks(bytes).front() == 200);
  // Texts that compress well are bounded, too.
  Json alike = Json::array();
  Json one = stacks_of_rank(0, true, 1);
  one.set("pod", std::string(40'000, 'p'));
  for (std::int64_t rank = 0; rank < 256; ++rank) {
    one.set("rank", rank);
    alike.push_back(one);
  }
  const std::string small =
      compressed_stacks(Json::object({{"ranks", std::move(alike)}}), verdict_of({}));
  const auto text = kube::gunzip(small, kMaxStacksText);
  REQUIRE(text);
  CHECK(text->size() > kMaxStacksText - 50'000);
  CHECK(kept_ranks(small).size() > 100);
}

TEST_CASE("without stacks nothing is kept, and other bytes are refused", "[stall]") {
  CHECK(compressed_stacks(Json::object({{"ranks", Json::array()}}), verdict_of({1})).empty());
  CHECK_FALSE(read_compressed_stacks(""));
  CHECK_FALSE(read_compressed_stacks("{}"));
  CHECK_FALSE(read_compressed_stacks(kube::GzipWriter(1'024).finish("no JSON")));
}

}  // namespace
}  // namespace trainer::stall::test
