// Messages of strangers: each is refused with the name of a member, or cut.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

using kube::Json;

Json good() {
  static const Job kJob(4);
  return kJob.message_of(kJob.ranks[1], "s1");
}

struct Bad {
  std::string member;
  Json value;
};

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinite = std::numeric_limits<double>::infinity();

const std::vector<Bad>& bad_members() {
  static const std::vector<Bad> kBad{{"v", 2},
                                     {"v", "1"},
                                     {"v", Json()},
                                     {"role", "root"},
                                     {"role", 1},
                                     {"pid", 0},
                                     {"pid", -1},
                                     {"pid", 1.5},
                                     {"pid", std::int64_t{1} << 40},
                                     {"born", 5},
                                     {"attempt", 5},
                                     {"attempt", "x"},
                                     {"attempt", "-1"},
                                     {"attempt", "99999999999999999999999"},
                                     {"restart", "1 "},
                                     {"sent", -1},
                                     {"sent", "0"},
                                     {"sent", std::numeric_limits<std::int64_t>::max()},
                                     {"bye", 1},
                                     {"bye", "true"},
                                     {"rank", -1},
                                     {"rank", 4},
                                     {"rank", "1"},
                                     {"rank", 1.0},
                                     {"world", 0},
                                     {"world", kMaxRanks + 1},
                                     {"world", -5},
                                     {"steps", -2},
                                     {"steps", 1e300},
                                     {"steps", Json()},
                                     {"batches", std::numeric_limits<std::int64_t>::min()},
                                     {"seq", -7},
                                     {"seq", "9"},
                                     {"idle", -2},
                                     {"idle", kNaN},
                                     {"idle", kInfinite},
                                     {"idle", 1e10},
                                     {"idle", "1"},
                                     {"gap", -kInfinite},
                                     {"own", Json::object()},
                                     {"cpu", kNaN},
                                     {"io", 1.5},
                                     {"top", 1},
                                     {"leaf", Json::array()},
                                     {"dump", 1},
                                     {"dump", Json::array()}};
  return kBad;
}

TEST_CASE("a member that is wrong is named, and nothing is kept") {
  REQUIRE(read_message(good()));
  for (const Bad& bad : bad_members()) {
    INFO(bad.member << ": " << bad.value.type_name());
    Json json = good();
    json.set(bad.member, bad.value);
    Watch watch({}, SteadyTime());
    const std::size_t empty = watch.bytes();
    const auto answer = watch.take(json, {"p", "u", "n"}, SteadyTime());
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == kube::ErrorCode::kInvalid);
    CHECK_THAT(answer.error().message, kube::test::contains("`" + bad.member));
    CHECK(watch.bytes() == empty);
  }
  for (const char* const required : {"v", "role", "pid", "sent", "rank", "world"}) {
    Json json = good();
    json.erase(required);
    CHECK_FALSE(read_message(json));
  }
  for (const Json& other : {Json(), Json(1), Json("x"), Json::array(), Json::object()})
    CHECK_FALSE(read_message(other));
}

TEST_CASE("members of stacks and workers that are wrong are named") {
  const std::vector<std::pair<const char*, const char*>> dumps{
      {R"({})", "dump.id"},
      {R"({"id":1})", "dump.id"},
      {R"({"id":"s","threads":{}})", "dump.threads"},
      {R"({"id":"s","threads":[1]})", "dump.threads[]"},
      {R"({"id":"s","threads":[{"name":1}]})", "dump.threads[].name"},
      {R"({"id":"s","threads":[{"main":1}]})", "dump.threads[].main"},
      {R"({"id":"s","threads":[{"frames":"x"}]})", "dump.threads[].frames"},
      {R"({"id":"s","threads":[{"frames":[[[]]]}]})", "dump.threads[].frames[]"},
      {R"({"id":"s","children":[{"pid":"1"}]})", "dump.children[].pid"},
      {R"({"id":"s","children":[{"text":{}}]})", "dump.children[].text"}};
  for (const auto& [text, member] : dumps) {
    Json json = good();
    json.set("dump", kube::parse_json(text).value());
    const auto read = read_message(json);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message, kube::test::contains("`" + std::string(member) + "`"));
  }
  const std::vector<std::pair<const char*, const char*>> lists{
      {R"({})", "workers"},
      {R"([1])", "workers[]"},
      {R"([{"rank":16384}])", "workers[].rank"},
      {R"([{"rank":0,"pid":"x"}])", "workers[].pid"},
      {R"([{"rank":0,"pid":1,"state":1}])", "workers[].state"},
      {R"([{"rank":0,"pid":1,"text":1}])", "workers[].text"}};
  for (const auto& [text, member] : lists) {
    Json json = Json::object({{"v", 1}, {"role", "agent"}, {"pid", 1}, {"sent", 0}});
    json.set("workers", kube::parse_json(text).value());
    const auto read = read_message(json);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message, kube::test::contains("`" + std::string(member) + "`"));
  }
}

TEST_CASE("a sequence number beyond 63 bits is unknown") {
  Json json = good();
  json.set("seq", 1.2e19);
  CHECK(read_message(json)->rank->seq == -1);
}

TEST_CASE("texts are cut and cleaned") {
  CHECK(clean_text("a\nb\x1b[31m\tc\x7f") == "a?b?[31m?c?");
  CHECK(clean_text("\xff\xfeok\xe2\x80\xae!") == "??ok?!");
  CHECK(clean_text("r\xc3\xa9sum\xc3\xa9.py:1 f") == "r\xc3\xa9sum\xc3\xa9.py:1 f");
  CHECK(clean_text("\xc3\xa9\xc3\xa9", 3) == "\xc3\xa9");
  Json json = good();
  json.set("top", std::string(60'000, 'x') + "\n");
  json.set("born", std::string(60'000, 'x'));
  const auto read = read_message(json);
  REQUIRE(read);
  CHECK(read->rank->top.size() == kMaxLine);
  CHECK(read->process.born.size() == 64);
}

TEST_CASE("stacks take no more than their bound") {
  Json frames = Json::array();
  for (int i = 0; i < 1000; ++i) frames.push_back(std::string(5000, 'f'));
  Json threads = Json::array();
  for (int i = 0; i < 100; ++i)
    threads.push_back(Json::object({{"name", "t"}, {"main", i == 0}, {"frames", frames}}));
  Json children = Json::array();
  for (int i = 0; i < 100; ++i)
    children.push_back(Json::object({{"pid", i}, {"text", std::string(100'000, '\n')}}));
  SECTION("threads") {
    const auto read = read_stacks(Json::object({{"id", "s"}, {"threads", threads}}));
    REQUIRE(read);
    CHECK(read->threads.at(0).frames.size() == 48);
    CHECK(bytes_of(*read) < kMaxStacks + 4096);
  }
  SECTION("children") {
    const auto read = read_stacks(Json::object({{"id", "s"}, {"children", children}}));
    REQUIRE(read);
    CHECK(read->children.size() <= 16);
    CHECK(bytes_of(*read) < kMaxStacks + 4096);
  }
}

// Changes one value somewhere in a document.
void mutate(Json& json, std::mt19937& random) {
  const auto draw = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  if (json.is_object() && !json.empty() && draw(8) != 0) {
    auto member = json.as_object().begin() + static_cast<std::ptrdiff_t>(draw(json.size()));
    if (draw(16) != 0) return mutate(member->second, random);
    json.erase(std::string(member->first));
    return;
  }
  if (json.is_array() && !json.empty() && draw(8) != 0)
    return mutate(json.as_array()[draw(json.size())], random);
  const std::vector<Json> values{Json(),
                                 true,
                                 -1,
                                 0,
                                 1,
                                 std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min(),
                                 1e308,
                                 -1e308,
                                 kNaN,
                                 kInfinite,
                                 "",
                                 "\xff\x00\x1b",
                                 std::string(70'000, 'a'),
                                 "Current thread 0x1\n  File \"",
                                 "  File \"\", line  in ",
                                 Json::array({Json::array({Json::array()})}),
                                 Json::object({{"id", Json::object()}}),
                                 "T",
                                 "gone",
                                 "18446744073709551616"};
  json = values[draw(values.size())];
}

TEST_CASE("whatever a message holds, it is refused or bounded") {
  std::mt19937 random(7);
  Job job(4, {}, 4);
  job.add_agents();
  job.run(100);
  job.stop(kAllReduce);
  job.leave(2, kLoader);
  job.ranks[2].children = {{8,
                            "Current thread 0x1 (most recent call first):\n  File \"/app/d.py\", "
                            "line 3 in get\n"}};
  job.run(400);
  int refused = 0;
  const int runs = trainer::test::times(20'000);
  for (int i = 0; i < runs; ++i) {
    Process& process = job.ranks[random() % 4];
    process.sent += 1;
    const auto answer = job.watch->take(Json::object(), process.sender, job.now);
    Json json = i % 3 == 0 ? job.agent_of(process.sender.pod, true)
                           : job.message_of(process, i % 3 == 1 ? "" : process.answered);
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      mutate(json, random);
    job.now += std::chrono::seconds(1);
    const auto taken = job.watch->take(json, process.sender, job.now);
    if (!taken) {
      ++refused;
      if (taken.error().code != kube::ErrorCode::kInvalid) FAIL(taken.error().message);
    }
    if (i % 15 == 0) job.watch->decide(job.now);
  }
  CHECK(refused > runs / 10);
  CHECK(refused < runs);
  CHECK(job.watch->bytes() < std::size_t{kMaxRanks} * 4096);
  CHECK(kube::is_utf8(kube::print_json(job.watch->stacks())));
}

}  // namespace
}  // namespace trainer::stall::test
