#include "runtimes/stall/watch.hh"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace trainer::stall {
namespace {

constexpr std::size_t kMaxPodName = 253;   // bytes of a pod or a machine
constexpr std::size_t kNodeOverhead = 48;  // bytes that a std::map adds to an entry

Sender bounded(const Sender& sender) {
  return {clean_text(sender.pod, kMaxPodName), clean_text(sender.uid, kMaxPodName),
          clean_text(sender.node, kMaxPodName), sender.restarts};
}

SteadyTime before(SteadyTime now, double seconds) {
  return now - std::chrono::duration_cast<SteadyTime::duration>(Seconds(seconds));
}

// A text on the heap; short ones are inside the object.
std::size_t heap_of(const std::string& text) {
  return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + 1;
}

}  // namespace

std::size_t Watch::digest_of(const Sender& sender, const ProcessId& process) {
  const std::size_t digest =
      std::hash<std::string>{}(fmt::format("{}/{}/{}", sender.uid, process.pid, process.born));
  return digest == 0 ? 1 : digest;
}

Watch::Watch(Limits limits, SteadyTime now)
    : own_limits_(limits),
      limits_(limits),
      begun_at_(now),
      heard_at_(now),
      rank_heard_at_(now),
      awake_at_(SteadyTime::min()) {}

kube::Result<Answer> Watch::take(const kube::Json& json, const Sender& sender, SteadyTime now) {
  auto message = read_message(json);
  if (!message) return tl::unexpected(std::move(message.error()));
  heard_at_ = std::max(heard_at_, now);
  // Not all processes know the attempt, but their pods do. An eviction counts for the former alone.
  message->attempt.first = std::max<std::int64_t>(message->attempt.first, sender.restarts);
  if (message->attempt.first < attempt_.first) return Answer{limits_.period, {}};
  // An agent does not know how often it restarted its ranks.
  const bool is_later =
      message->rank ? message->attempt > attempt_ : message->attempt.first > attempt_.first;
  if (is_later) restart(message->attempt, now);
  restarts_ = std::max(restarts_, sender.restarts);
  if (message->rank)
    take_rank(*message, sender, now);
  else
    take_workers(*message, sender, now);
  return Answer{limits_.period, request_ ? request_->id : std::string()};
}

void Watch::restart(Attempt attempt, SteadyTime now, std::optional<std::int32_t> world) {
  note_end(attempt, world);
  attempt_ = attempt;
  if (world) ++resizes_;
  begun_at_ = now;
  progress_at_.reset();
  previous_position_ = std::exchange(position_, Position());
  ranks_.clear();
  whole_.clear();
  request_.reset();
  bytes_ = 0;
}

// ---- ranks

// A second process of a pod takes the place of the first. One of another pod does so only if the
// first is no more, so that a wrong RANK does not hide the right one.
bool Watch::admit(Rank& rank, const Message& message, const Sender& sender, SteadyTime now) const {
  if (rank.has_reported && rank.sender.uid == sender.uid && rank.process == message.process)
    return message.sent > rank.sent;
  const std::size_t digest = digest_of(sender, message.process);
  if (std::find(rank.replaced.begin(), rank.replaced.end(), digest) != rank.replaced.end())
    return false;
  const bool is_silent = now - rank.heard_at > limits_.silence();
  if (rank.has_reported && rank.sender.uid != sender.uid && !rank.has_ended && !is_silent)
    return false;
  Rank fresh;
  if (rank.has_reported) {
    std::copy(rank.replaced.begin(), rank.replaced.end() - 1, fresh.replaced.begin() + 1);
    fresh.replaced.front() = digest_of(rank.sender, rank.process);
  }
  if (rank.sender.uid == sender.uid) fresh.word = std::move(rank.word);
  fresh.sender = bounded(sender);
  fresh.process = message.process;
  fresh.first_at = fresh.heard_at = fresh.active_at = now;
  rank = std::move(fresh);
  return true;
}

void Watch::take_rank(Message& message, const Sender& sender, SteadyTime now) {
  if (has_ended(message, sender, now)) return;
  RankMessage& said = *message.rank;
  if (is_resized(message, sender)) restart(attempt_, now, said.world);
  // A job of which nothing was heard may have been frozen, with the clock of its processes going
  // on; its time begins again.
  if (now - rank_heard_at_ > limits_.silence() && !ranks_.empty()) awake_at_ = now;
  // Other pods after a silence: the job was suspended, and no number says so.
  if (const auto known = ranks_.find(said.rank); known != ranks_.end() &&
                                                 known->second.sender.uid != sender.uid &&
                                                 now - rank_heard_at_ > limits_.silence())
    restart(attempt_, now);
  rank_heard_at_ = now;
  const auto [entry, is_new] = ranks_.try_emplace(said.rank);
  Rank& rank = entry->second;
  const std::size_t bytes = is_new ? 0 : bytes_of(rank);
  const bool is_known =
      rank.has_reported && rank.sender.uid == sender.uid && rank.process == message.process;
  if (!admit(rank, message, sender, now)) return;
  if (!is_known) {
    drop_dump(said.rank, rank);
    // The answer to the first heartbeats must have the right period: they are the most.
    limits_ = limits_for(own_limits_, said.world);
  }
  // A rank that begins or ends to wait is no more where its stacks were taken.
  const bool has_switched = wait_of(rank.top, rank.leaf) != wait_of(said.top, said.leaf);
  const bool has_moved = take_marks(rank, said, now);
  take_activity(rank, said, now);
  rank.has_reported = true;
  rank.world = said.world;
  rank.sent = message.sent;
  rank.heard_at = now;
  rank.has_ended = rank.has_ended || message.is_last;
  rank.top = std::move(said.top);
  rank.leaf = std::move(said.leaf);
  bytes_ = bytes_ - bytes + bytes_of(rank);
  if (has_moved || (has_switched && !said.dump))
    drop_dump(said.rank, rank);
  else if (said.dump)
    take_dump(said.rank, rank, std::move(*said.dump));
}

// Returns whether the rank made progress since its last stacks may have been taken.
bool Watch::take_marks(Rank& rank, const RankMessage& message, SteadyTime now) {
  const bool is_first = !rank.has_reported;
  // A number that is unknown for once does not count as another one.
  const std::int64_t steps = message.steps < 0 ? rank.steps : message.steps;
  const std::int64_t batches = message.batches < 0 ? rank.batches : message.batches;
  const bool has_stepped = !is_first && (steps != rank.steps || batches != rank.batches);
  const bool has_joined = message.seq >= 0 && rank.last_seq >= 0 && message.seq != rank.last_seq;
  SteadyTime progress = message.idle < 0 ? now : before(now, message.idle);
  if (message.idle < 0 && !is_first && !has_stepped) progress = rank.progress_at;
  if (has_stepped) progress = std::max(progress, rank.heard_at);
  if (has_joined) progress = now;  // it is not known when
  if (!is_first) progress = std::max(progress, rank.progress_at);
  rank.progress_at = progress;
  rank.steps = steps;
  rank.batches = batches;
  rank.seq = message.seq;
  if (message.seq >= 0) rank.last_seq = message.seq;
  rank.gap = std::max(message.gap, 0.0);
  if (message.own >= 0) rank.own = message.own;
  position_.steps = std::max(position_.steps, steps);
  position_.saved = std::max(position_.saved, message.saved);
  position_.has_loaded = position_.has_loaded || message.loaded >= 0;
  if (steps > 0 || batches > 0)
    position_.stepped_at = std::max(position_.stepped_at.value_or(progress), progress);
  if (steps > 0 || batches > 0 || has_joined)
    progress_at_ = std::max(progress_at_.value_or(progress), progress);
  return has_stepped || has_joined || (request_ && progress > request_->since);
}

void Watch::take_activity(Rank& rank, const RankMessage& message, SteadyTime now) const {
  constexpr double kBusyCpu = 0.2;          // seconds in a second
  constexpr double kBusyBytes = 100'000.0;  // in a second
  const std::size_t top = std::hash<std::string>{}(message.top);
  if (rank.has_reported) {
    // Stacks follow a heartbeat at once, and taking them costs something.
    if (now - rank.sample_at < limits_.period / 2) return;
    const double seconds = std::max(Seconds(now - rank.sample_at).count(), 0.1);
    const bool has_cpu = rank.sample_cpu >= 0 && message.cpu >= 0 &&
                         message.cpu - rank.sample_cpu > kBusyCpu * seconds;
    const bool has_io = rank.sample_io >= 0 && message.io >= 0 &&
                        static_cast<double>(message.io) - static_cast<double>(rank.sample_io) >
                            kBusyBytes * seconds;
    // A rank that waits for others in a collective may use a whole CPU to poll.
    const bool waits = message.world > 1 && wait_of(message.top, message.leaf) == Wait::kWaiting;
    if (!waits && (has_cpu || has_io || top != rank.sample_top)) rank.active_at = now;
  }
  rank.sample_at = now;
  rank.sample_cpu = message.cpu;
  rank.sample_io = message.io;
  rank.sample_top = top;
}

void Watch::take_dump(std::int32_t number, Rank& rank, Stacks stacks) {
  const bool is_wanted = request_ && !stacks.id.empty() &&
                         (stacks.id == request_->id || stacks.id == request_->previous);
  if (!is_wanted) return;
  drop_dump(number, rank);
  bytes_ -= bytes_of(rank);
  rank.summary = summary_of(stacks);
  bytes_ += bytes_of(rank);
  const bool is_waiting = rank.summary->wait == Wait::kWaiting;
  if (whole_.size() >= kMaxWholeStacks) {
    // Those that wait are alike; the others say more.
    const auto waiting = std::find_if(whole_.begin(), whole_.end(),
                                      [](const auto& each) { return each.second.is_waiting; });
    if (is_waiting || waiting == whole_.end()) return;
    bytes_ -= stall::bytes_of(waiting->second.stacks);
    whole_.erase(waiting);
  }
  bytes_ += stall::bytes_of(stacks);
  whole_.insert_or_assign(number, Whole{std::move(stacks), is_waiting});
}

void Watch::drop_dump(std::int32_t number, Rank& rank) {
  if (rank.summary) {
    bytes_ -= bytes_of(rank);
    rank.summary.reset();
    bytes_ += bytes_of(rank);
  }
  const auto whole = whole_.find(number);
  if (whole == whole_.end()) return;
  bytes_ -= stall::bytes_of(whole->second.stacks);
  whole_.erase(whole);
}

// ---- agents

void Watch::take_workers(const Message& message, const Sender& sender, SteadyTime now) {
  const std::size_t agent = digest_of(sender, message.process);
  for (const WorkerMessage& worker : message.workers) {
    const auto [entry, is_new] = ranks_.try_emplace(worker.rank);
    Rank& rank = entry->second;
    const std::size_t bytes = is_new ? 0 : bytes_of(rank);
    if (is_new) {
      rank.sender = bounded(sender);
      rank.first_at = rank.heard_at = now;
    }
    const bool is_late = rank.word && rank.word->agent == agent && rank.word->sent >= message.sent;
    if (rank.sender.uid == sender.uid && !is_late) {
      std::string line = worker.line;
      // Stacks come only if they were asked for, and stay until the process is another one.
      if (line.empty() && rank.word && rank.word->process == worker.process)
        line = std::move(rank.word->line);
      rank.word = Word{worker.process, agent, message.sent, worker.state, std::move(line), now};
      const bool is_same = rank.has_reported && rank.process == worker.process;
      if (is_same && worker.state == "gone") rank.has_ended = true;
    }
    bytes_ = bytes_ - bytes + bytes_of(rank);
  }
}

// ---- the verdict

// The youngest process knows how many ranks there are now.
std::int32_t Watch::world() const {
  const Rank* youngest = nullptr;
  for (const auto& [number, rank] : ranks_)
    if (rank.has_reported && (youngest == nullptr || rank.first_at > youngest->first_at))
      youngest = &rank;
  return youngest == nullptr ? 0 : youngest->world;
}

RankReport Watch::report_of(const Rank& rank, SteadyTime now) const {
  RankReport report;
  report.pod = rank.sender.pod;
  report.node = rank.sender.node;
  report.has_reported = rank.has_reported;
  report.age = std::max(Seconds(now - rank.heard_at), Seconds(0));
  report.idle = Seconds(now - std::max(rank.progress_at, awake_at_));
  report.quiet = Seconds(now - rank.active_at);
  report.gap = Seconds(rank.gap);
  report.steps = rank.steps;
  report.batches = rank.batches;
  report.seq = rank.seq;
  report.sent = rank.sent;
  report.own = rank.own;
  report.has_ended = rank.has_ended;
  report.has_stack = rank.summary.has_value();
  report.is_awaited = !request_ || now <= request_->since + limits_.answer_time();
  report.wait = rank.summary ? rank.summary->wait : wait_of(rank.top, rank.leaf);
  report.line = rank.summary && !rank.summary->line.empty() ? rank.summary->line : rank.top;
  if (rank.summary) {
    report.helper = rank.summary->helper;
    report.where = rank.summary->where;
  }
  const bool is_known = rank.word && (!rank.has_reported || rank.word->process == rank.process);
  if (!is_known) return report;
  report.signal_line = rank.word->line;
  // A heartbeat after the agent's word shows that the process runs again.
  const bool is_valid = !rank.has_reported || rank.word->at >= rank.heard_at;
  const std::string_view state = rank.word->state;
  report.has_ended =
      report.has_ended || (is_valid && (state == "Z" || state == "X" || state == "gone"));
  report.is_stopped = is_valid && (state == "T" || state == "t") &&
                      now - rank.word->at <= limits_.silence() && report.age > 2 * limits_.period;
  return report;
}

std::map<std::int32_t, RankReport> Watch::reports(std::int32_t world, SteadyTime now) const {
  std::map<std::int32_t, RankReport> reports;
  for (const auto& [number, rank] : ranks_) {
    if (number >= world) break;
    reports.emplace_hint(reports.end(), number, report_of(rank, now));
  }
  return reports;
}

bool Watch::decide(SteadyTime now) {
  const std::int32_t ranks = world();
  if (ranks > 0) limits_ = limits_for(own_limits_, ranks);
  const auto reported = reports(ranks, now);
  Verdict verdict = stall::decide(reported, ranks, Seconds(now - begun_at_), limits_);
  const bool is_stall = verdict.phase == Phase::kStalling || verdict.phase == Phase::kStalled;
  if (is_stall) {
    renew_request(now);
  } else if (request_) {
    forget_stall();
  }
  bool has_changed = !(verdict == verdict_);
  if (verdict.phase == Phase::kRunning)
    has_changed = stragglers_.decide(reported, now) || has_changed;
  else if (verdict.phase != Phase::kUnknown && verdict.phase != Phase::kStalling)
    has_changed = stragglers_.clear() || has_changed;
  verdict_ = std::move(verdict);
  return has_changed;
}

// Stacks that were taken in one stall say nothing of a later one.
void Watch::forget_stall() {
  request_.reset();
  for (auto& [number, rank] : ranks_) {
    drop_dump(number, rank);
    if (!rank.word || rank.word->line.empty()) continue;
    bytes_ -= bytes_of(rank);
    rank.word->line = std::string();
    bytes_ += bytes_of(rank);
  }
}

void Watch::renew_request(SteadyTime now) {
  if (request_ && now - request_->issued < 4 * limits_.period) return;
  if (!request_) request_ = Request{{}, {}, now, now};
  request_->previous = std::move(request_->id);
  // Processes answer an id once, so it must differ from those of a controller before this one.
  request_->id = fmt::format("s{:x}", now.time_since_epoch().count());
  request_->issued = now;
}

std::optional<SteadyTime> Watch::progress_at() const {
  return progress_at_;
}

std::size_t Watch::bytes() const {
  return sizeof(Watch) + bytes_ + stragglers_.bytes() + ended_.capacity() * sizeof(std::size_t) +
         whole_.size() * (kNodeOverhead + sizeof(Whole)) +
         verdict_.groups.size() * (sizeof(Group) + kMaxLine + kMaxListed * sizeof(std::int32_t)) +
         verdict_.suspects.size() * (sizeof(Suspect) + 2 * (kMaxPodName + kMaxLine));
}

std::size_t Watch::bytes_of(const Rank& rank) {
  std::size_t bytes = kNodeOverhead + sizeof(std::int64_t) + sizeof(Rank);
  for (const std::string* const text : {&rank.sender.pod, &rank.sender.uid, &rank.sender.node,
                                        &rank.process.born, &rank.top, &rank.leaf})
    bytes += heap_of(*text);
  if (rank.summary)
    bytes +=
        heap_of(rank.summary->line) + heap_of(rank.summary->helper) + heap_of(rank.summary->where);
  if (rank.word)
    bytes +=
        heap_of(rank.word->process.born) + heap_of(rank.word->state) + heap_of(rank.word->line);
  return bytes;
}

kube::Json Watch::stacks() const {
  kube::Json::Array list;
  for (const auto& [number, whole] : whole_) {
    const auto rank = ranks_.find(number);
    kube::Json each = json_of(whole.stacks);
    each.set("rank", std::int64_t{number});
    each.set("pod", rank->second.sender.pod);
    each.set("node", rank->second.sender.node);
    each.set("waiting", whole.is_waiting);
    list.push_back(std::move(each));
  }
  return kube::Json::object({{"ranks", std::move(list)}});
}

}  // namespace trainer::stall
