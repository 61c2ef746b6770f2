// The stacks of a rank: read from its message, bounded, and summed up in the line that matters.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer::stall {

inline constexpr std::size_t kMaxLine = 200;          // bytes of a frame or a user's line
inline constexpr std::size_t kMaxStacks = 48U << 10;  // bytes that the stacks of one rank take

// A thread or child that exceeds the bounds of the protocol is cut.
struct Thread {
  std::string name;
  std::string state, wchan;
  bool is_main = false;
  std::vector<std::string> frames;  // "FILE:LINE FUNCTION", the innermost first
};
struct Child {
  std::int64_t pid = -1;
  std::string command, state, wchan;
  std::string text;  // by faulthandler
};
struct Stacks {
  std::string id;  // the id of the request
  std::vector<Thread> threads;
  std::vector<Child> children;
};

// A rank waits for others inside a collective, or in a backward pass, which waits for those of DDP.
enum class Wait { kUnknown, kAway, kWaiting };

struct Summary {
  Wait wait = Wait::kUnknown;
  std::string line;    // the innermost user line of the main thread, or its innermost line
  std::string helper;  // the line of a worker process or thread that the main thread waits for
  std::string where;   // "worker process PID" or "thread NAME"; empty without a helper
};

// Reads the member `dump` of a message. Errors (kInvalid) name the member.
kube::Result<Stacks> read_stacks(const kube::Json& dump);
Summary summary_of(const Stacks& stacks);
// Decides by the last lines of a heartbeat where no stacks are known.
Wait wait_of(std::string_view top, std::string_view leaf);
// Returns the innermost user line in a text of faulthandler, of the thread that ran; "" for none.
std::string line_by_signal(std::string_view text);
// Returns valid UTF-8 of at most `limit` bytes in one line, without hidden characters.
std::string clean_text(std::string_view text, std::size_t limit = kMaxLine);
kube::Json json_of(const Stacks& stacks);
std::size_t bytes_of(const Stacks& stacks);

}  // namespace trainer::stall
