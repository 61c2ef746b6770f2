#include "controller/status/heartbeat_store.hh"

#include <optional>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/stall/saved_stacks.hh"
#include "runtimes/trainjob/stragglers.hh"
#include "runtimes/views/text.hh"

namespace trainer {

using kube::Json;
using kube::ServerResponse;
using kube::Task;

namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kForgetAfter = std::chrono::minutes(30);
constexpr int kMaxStacksOfTick = 4;                     // sets of stacks of jobs
constexpr auto kStacksPause = std::chrono::minutes(1);  // between two sets of stacks of a job
// A dump of 32 threads has some 1,600 frames.
constexpr kube::JsonLimits kMessageLimits{.max_bytes = 65'536, .max_depth = 8, .max_values = 4'000};

ServerResponse refuse(int status, std::string message) {
  ServerResponse response;
  response.status = status;
  response.body = kube::print_json(Json::object({{"message", std::move(message)}}));
  return response;
}

stall::Limits limits_of(const VerifiedPod& pod) {
  const auto threshold = parse_unsigned(pod.hang_threshold);
  return threshold ? stall::limits_of(*threshold) : stall::Limits();
}

}  // namespace

HeartbeatStore::HeartbeatStore(kube::asio::io_context& io, kube::Clock& clock,
                               std::shared_ptr<HeartbeatBoard> board, const kube::Log& log)
    : clock_(clock),
      board_(std::move(board)),
      log_(log),
      pause_(io.get_executor()),
      tasks_(io.get_executor(), [this](std::string_view task, std::string_view what) {
        is_deciding_ = false;
        log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
      }) {}

ServerResponse HeartbeatStore::take(const kube::ObjectKey& trainjob, const VerifiedPod& pod,
                                    std::string_view body) {
  const Steady now = clock_.steady();
  Job* const job = find_or_make(trainjob, pod, now);
  if (!job) return refuse(503, "too many jobs report");
  if (is_too_often(*job, pod.uid, now)) return refuse(429, "the pod reports too often");
  const auto message = kube::parse_json(body, kMessageLimits);
  if (!message) return refuse(422, message.error().message);
  const auto answer = job->watch.take(*message, {pod.name, pod.uid, pod.node, pod.restarts}, now);
  if (!answer) return refuse(422, answer.error().message);
  count_bytes(*job);
  Json reply = Json::object({{"period", answer->period.count()}});
  if (!answer->dump.empty()) reply.set("dump", answer->dump);
  ServerResponse response;
  response.body = kube::print_json(reply);
  return response;
}

HeartbeatStore::Job* HeartbeatStore::find_or_make(const kube::ObjectKey& trainjob,
                                                  const VerifiedPod& pod, Steady now) {
  const auto at = jobs_.find(pod.trainjob_uid);
  const auto share = shares_.find(trainjob.ns);
  const Share used = share == shares_.end() ? Share() : share->second;
  const auto is_full = [this](std::size_t own, std::size_t all, std::size_t most_own,
                              std::size_t most) {
    const std::size_t equal = most / std::max(shares_.size(), std::size_t{1});
    return own >= most_own || (all >= most && own >= equal);
  };
  if (is_full(used.bytes, total_.bytes, kMaxBytesOfNamespace, kMaxBytes)) return nullptr;
  if (at != jobs_.end()) return at->second.get();
  if (is_full(used.jobs, total_.jobs, kMaxJobsOfNamespace, kMaxJobs)) return nullptr;
  auto& job = jobs_[pod.trainjob_uid];
  job = std::make_unique<Job>(trainjob, limits_of(pod), now);
  ++shares_[trainjob.ns].jobs;
  ++total_.jobs;
  if (!is_deciding_ && !is_stopped_) is_deciding_ = tasks_.spawn("verdicts", decide_all());
  return job.get();
}

bool HeartbeatStore::is_too_often(Job& job, const std::string& pod_uid, Steady now) {
  const auto is_over = [now](const Messages& messages) { return now - messages.since >= kWindow; };
  constexpr auto kMaxPods = static_cast<std::size_t>(stall::kMaxRanks);
  // Pods of earlier attempts must not take the room of later ones.
  if (job.messages.size() >= kMaxPods && !job.messages.contains(pod_uid))
    std::erase_if(job.messages, [&](const auto& entry) { return is_over(entry.second); });
  if (job.messages.size() >= kMaxPods && !job.messages.contains(pod_uid)) return true;
  Messages& messages = job.messages.try_emplace(pod_uid, Messages{now, 0}).first->second;
  if (is_over(messages)) messages = {now, 0};
  return ++messages.count > kMaxMessages;
}

void HeartbeatStore::count_bytes(Job& job) {
  const std::size_t bytes = job.watch.bytes() + (job.stacks ? job.stacks->bytes.size() : 0);
  Share& share = shares_[job.key.ns];
  share.bytes += bytes - job.bytes;
  total_.bytes += bytes - job.bytes;
  job.bytes = bytes;
}

Task<void> HeartbeatStore::decide_all() {
  while (!is_stopped_ && !jobs_.empty()) {
    co_await pause_.wait_for(clock_, kTick);
    const Steady now = clock_.steady();
    stacks_left_ = kMaxStacksOfTick;
    for (auto& [uid, job] : jobs_) decide(uid, *job, now);
    forget_silent(now);
  }
  is_deciding_ = false;
}

void HeartbeatStore::decide(const std::string& uid, Job& job, Steady now) {
  // A verdict is due soon after the threshold has passed, not a period later.
  if (now - job.decided_at < job.pause) return;
  job.decided_at = now;
  bool has_changed = job.watch.decide(now);
  const stall::Phase phase = job.watch.verdict().phase;
  // The facts on the board stay.
  if (phase == stall::Phase::kUnknown || phase == stall::Phase::kStalling) return;
  if (phase != stall::Phase::kStalled)
    job.stacks.reset();
  else if (keep_stacks(job, now))
    has_changed = true;
  const Shown shown{job.watch.attempt(), job.watch.resizes(),
                    job.watch.position().stepped_at.has_value()};
  has_changed = std::exchange(job.shown, shown) != shown || has_changed;
  if (has_changed)
    board_->put(uid, job.key, facts_of(job, now));
  else if (phase == stall::Phase::kRunning)
    board_->renew(uid, facts_of(job, now));
}

std::optional<kube::Time> HeartbeatStore::time_of(std::optional<Steady> at, Steady now) const {
  if (!at) return std::nullopt;
  return clock_.now() + std::chrono::duration_cast<std::chrono::microseconds>(*at - now);
}

HeartbeatBoard::Facts HeartbeatStore::facts_of(const Job& job, Steady now) const {
  auto facts = std::make_shared<HeartbeatFacts>();
  const stall::Verdict& verdict = job.watch.verdict();
  if (verdict.phase == stall::Phase::kStalled) {
    facts->stall = stall_of(verdict, time_of(job.watch.progress_at(), now));
    facts->stacks = job.stacks;
  }
  facts->restarts = job.watch.restarts();
  facts->position = job.watch.position();
  facts->stepped_at = time_of(facts->position.stepped_at, now);
  facts->previous = job.watch.previous_position();
  facts->process_restarts = static_cast<std::int32_t>(job.watch.attempt().second);
  facts->resizes = job.watch.resizes();
  facts->restarts_at_one_step = job.watch.loop().repeats();
  facts->last_step = job.watch.loop().steps();
  const stall::Stragglers& stragglers = job.watch.stragglers();
  if (stragglers.is_known() || verdict.phase != stall::Phase::kRunning)
    facts->stragglers = stragglers_of(stragglers.named());
  return facts;
}

// They are made when a stall begins, and when others are suspected. Returns whether they are new.
bool HeartbeatStore::keep_stacks(Job& job, Steady now) {
  std::vector<std::int32_t> about;
  for (const stall::Suspect& suspect : job.watch.verdict().suspects) about.push_back(suspect.rank);
  if (job.stacks && job.stacks_about == about) return false;
  // Making and writing them is much work. A rank can change its mind in each heartbeat, and a
  // network that fails stops all jobs at once.
  if (job.stacks_at && now - *job.stacks_at < kStacksPause) return false;
  if (stacks_left_ == 0) return false;
  auto saved = std::make_shared<SavedStacks>();
  saved->bytes = stall::compressed_stacks(job.watch.stacks(), job.watch.verdict());
  if (saved->bytes.empty()) return false;
  --stacks_left_;
  saved->number = ++last_stacks_;
  job.stacks = std::move(saved);
  job.stacks_about = std::move(about);
  job.stacks_at = now;
  count_bytes(job);
  return true;
}

void HeartbeatStore::forget_silent(Steady now) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = *at->second;
    if (now - job.watch.heard_at() < kForgetAfter) {
      ++at;
      continue;
    }
    const auto share = shares_.find(job.key.ns);
    share->second.bytes -= job.bytes;
    total_.bytes -= job.bytes;
    --total_.jobs;
    if (--share->second.jobs == 0) shares_.erase(share);
    board_->forget(at->first);
    at = jobs_.erase(at);
  }
}

Task<void> HeartbeatStore::stop() {
  is_stopped_ = true;
  pause_.notify();
  co_await tasks_.join();
}

}  // namespace trainer
