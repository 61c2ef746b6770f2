// An attempt of a job ends: its processes are replaced.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "runtimes/stall/watch.hh"

namespace trainer::stall {
namespace {

// `born` is "TICKS-PID". Returns the ticks since the machine's boot; nullopt for another text.
std::optional<std::uint64_t> ticks_of(std::string_view born) {
  std::uint64_t ticks = 0;
  const char* const end = born.data() + born.size();
  const auto [at, error] = std::from_chars(born.data(), end, ticks);
  if (error != std::errc() || at == end || *at != '-') return std::nullopt;
  return ticks;
}

}  // namespace

// torchrun of each node counts the restarts of its own ranks, so those that run together differ.
void Watch::note_end(Attempt next, std::optional<std::int32_t> world) {
  std::int64_t steps = -1;
  std::int64_t batches = -1;
  ended_.clear();
  for (const auto& [number, rank] : ranks_) {
    if (!rank.has_reported || rank.world == world) continue;
    steps = std::max(steps, rank.steps);
    batches = std::max(batches, rank.batches);
    // One that has taken the place of another may be of the time that begins.
    if (world || rank.replaced.front() == 0) ended_.push_back(digest_of(rank.sender, rank.process));
  }
  std::sort(ended_.begin(), ended_.end());
  ended_attempt_ = attempt_;
  loop_.note(attempt_, next, steps, batches);
}

// A process that replaces itself by exec may go on in a later attempt.
bool Watch::has_ended(const Message& message, const Sender& sender, SteadyTime now) const {
  // A process that torchrun has ended sends nothing more. One that is heard much later goes on: a
  // rank has started a torchrun of its own, whose ranks were taken for the next ones of the job.
  if (ended_attempt_ == attempt_ && now - begun_at_ > limits_.silence()) return false;
  return message.attempt <= ended_attempt_ &&
         std::binary_search(ended_.begin(), ended_.end(), digest_of(sender, message.process));
}

// torchrun starts the processes of all nodes again if a node comes, and counts no restart. A
// younger process of the same pod shows it, which says another number of ranks. A wrong number of
// another pod, or a late message of an older process, does not.
bool Watch::is_resized(const Message& message, const Sender& sender) const {
  const auto known = ranks_.find(message.rank->rank);
  if (known == ranks_.end() || !known->second.has_reported) return false;
  const Rank& before = known->second;
  if (before.sender.uid != sender.uid || before.world == message.rank->world) return false;
  const std::size_t digest = digest_of(sender, message.process);
  if (std::ranges::find(before.replaced, digest) != before.replaced.end()) return false;
  const auto began = ticks_of(before.process.born);
  const auto begins = ticks_of(message.process.born);
  return began && begins && *began < *begins;
}

}  // namespace trainer::stall
