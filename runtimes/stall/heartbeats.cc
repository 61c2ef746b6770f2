#include "runtimes/stall/heartbeats.hh"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "kube/model/text.hh"

namespace trainer::stall {
namespace {

using kube::Json;

constexpr std::size_t kMaxWorkers = 64;
constexpr std::size_t kMaxBorn = 64;
constexpr std::int64_t kMaxPid = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxCount = std::int64_t{1} << 60;
constexpr std::int64_t kMaxAttempt = 1'000'000'000;
// Times above this are those of a broken clock: a process that runs for thirty years.
constexpr double kMaxSeconds = 1e9;

tl::unexpected<kube::Error> refuse(std::string_view member, std::string_view wanted) {
  return kube::fail(kube::ErrorCode::kInvalid, "`{}` must be {}", member, wanted);
}

// Reads the members of one object. The first error stays, and later reads return nothing.
class Members {
 public:
  explicit Members(const Json& json, std::string prefix = {})
      : json_(json), prefix_(std::move(prefix)) {}

  std::int64_t integer(std::string_view name, std::int64_t lowest, std::int64_t highest) {
    const Json* const found = json_.find(name);
    if (found != nullptr && found->is_int() && lowest <= found->as_int() &&
        found->as_int() <= highest)
      return found->as_int();
    // Numbers that are unknown are -1; an older reporter may leave them out.
    if (found == nullptr && lowest == -1) return -1;
    fail(name, fmt::format("an integer from {} to {}", lowest, highest));
    return lowest;
  }

  // torch 1.13 begins to count at a random number of 64 bits, of which half do not fit.
  std::int64_t sequence(std::string_view name) {
    constexpr double kBeyond = 0x1p63;
    const Json* const found = json_.find(name);
    if (found != nullptr && found->is_double() && found->as_double() >= kBeyond) return -1;
    return integer(name, -1, std::numeric_limits<std::int64_t>::max());
  }

  double number(std::string_view name) {
    const Json* const found = json_.find(name);
    if (found == nullptr) return -1;
    // A comparison with NaN is false.
    if (found->is_number() && found->as_double() >= -1 && found->as_double() <= kMaxSeconds)
      return found->as_double() < 0 ? -1 : found->as_double();
    fail(name, "a number of at least -1");
    return -1;
  }

  std::string text(std::string_view name, std::size_t limit) {
    return clean_text(raw_text(name), limit);
  }

  std::string_view raw_text(std::string_view name) {
    const Json* const found = json_.find(name);
    if (found == nullptr) return {};
    if (!found->is_string()) {
      fail(name, "a string");
      return {};
    }
    return found->as_string();
  }

  // Returns 0 for an empty text.
  std::int64_t counter(std::string_view name) {
    const std::string_view text = raw_text(name);
    if (text.empty()) return 0;
    const auto number = kube::parse_number<std::int64_t>(text.substr(0, 20));
    if (number && 0 <= *number && *number <= kMaxAttempt) return *number;
    fail(name, "the digits of a count, or empty");
    return 0;
  }

  bool flag(std::string_view name) {
    const Json* const found = json_.find(name);
    if (found == nullptr) return false;
    if (!found->is_bool()) fail(name, "true or false");
    return found->is_bool() && found->as_bool();
  }

  void fail(std::string_view name, std::string_view wanted) {
    if (!error_) error_ = refuse(prefix_ + std::string(name), wanted).value();
  }
  void fail(kube::Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<kube::Error>& error() const { return error_; }

 private:
  const Json& json_;
  std::string prefix_;
  std::optional<kube::Error> error_;
};

ProcessId read_process(Members& members) {
  ProcessId process;
  process.pid = members.integer("pid", 1, kMaxPid);
  process.born = members.text("born", kMaxBorn);
  return process;
}

RankMessage read_rank(const Json& json, Members& members) {
  RankMessage message;
  message.world = static_cast<std::int32_t>(members.integer("world", 1, kMaxRanks));
  message.rank = static_cast<std::int32_t>(members.integer("rank", 0, message.world - 1));
  message.steps = members.integer("steps", -1, kMaxCount);
  message.batches = members.integer("batches", -1, kMaxCount);
  message.seq = members.sequence("seq");
  message.io = members.integer("io", -1, std::numeric_limits<std::int64_t>::max());
  message.saved = members.integer("saved", -1, kMaxCount);
  message.loaded = members.integer("loaded", -1, kMaxCount);
  message.idle = members.number("idle");
  message.gap = members.number("gap");
  message.own = members.number("own");
  message.cpu = members.number("cpu");
  message.top = members.text("top", kMaxLine);
  message.leaf = members.text("leaf", kMaxLine);
  const Json* const dump = json.find("dump");
  if (dump == nullptr || members.error()) return message;
  auto stacks = read_stacks(*dump);
  if (stacks)
    message.dump = std::move(*stacks);
  else
    members.fail(std::move(stacks.error()));
  return message;
}

std::vector<WorkerMessage> read_workers(const Json& json, Members& members) {
  std::vector<WorkerMessage> workers;
  const Json* const list = json.find("workers");
  if (list == nullptr || !list->is_array()) {
    members.fail("workers", "a list");
    return workers;
  }
  for (const Json& item : list->as_array()) {
    if (workers.size() == kMaxWorkers) break;
    if (!item.is_object()) {
      members.fail("workers[]", "an object");
      break;
    }
    Members each(item, "workers[].");
    WorkerMessage worker;
    worker.rank = static_cast<std::int32_t>(each.integer("rank", 0, kMaxRanks - 1));
    worker.process = read_process(each);
    worker.state = each.text("state", 8);
    worker.line = line_by_signal(each.raw_text("text"));
    if (each.error()) {
      members.fail(*each.error());
      break;
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

}  // namespace

kube::Result<Message> read_message(const Json& json) {
  if (!json.is_object()) return kube::fail(kube::ErrorCode::kInvalid, "a report must be an object");
  if (json.get_int("v") != 1) return refuse("v", "1, the version of the protocol");
  const std::string_view role = json.get_string("role");
  if (role != "rank" && role != "agent") return refuse("role", "`rank` or `agent`");
  Members members(json);
  Message message;
  message.process = read_process(members);
  message.attempt = {members.counter("attempt"), members.counter("restart")};
  message.sent = members.integer("sent", 0, kMaxCount);
  message.is_last = members.flag("bye");
  if (role == "rank")
    message.rank = read_rank(json, members);
  else
    message.workers = read_workers(json, members);
  if (members.error()) return tl::unexpected(*members.error());
  return message;
}

}  // namespace trainer::stall
