#include "tests/unit/stall/job.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace trainer::stall::test {

#define DIST "/x/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
const Frames kAllReduce{DIST ":99 all_reduce", DIST ":9 wrapper", "/app/train.py:80 main"};
const Frames kBackward{"/x/lib/python3.11/site-packages/torch/autograd/__init__.py:97 backward",
                       "/x/lib/python3.11/site-packages/torch/_tensor.py:9 backward",
                       "/app/train.py:70 main"};
const Frames kBarrier{DIST ":3152 barrier", "/app/train.py:90 main"};
const Frames kItem{"/app/train.py:81 main"};
const Frames kLoad{"/app/data.py:5 read", "/app/train.py:60 main"};
const Frames kSave{"/x/lib/python3.11/site-packages/torch/serialization.py:700 save",
                   "/app/save.py:7 save", "/app/train.py:95 main"};
const Frames kLoader{
    "/usr/lib/python3.11/selectors.py:415 select",
    "/usr/lib/python3.11/multiprocessing/connection.py:930 wait",
    "/x/lib/python3.11/site-packages/torch/utils/data/dataloader.py:1146 _try_get_data",
    "/x/lib/python3.11/site-packages/torch/utils/data/dataloader.py:1312 _get_data",
    "/app/train.py:60 main"};
const Frames kJoin{"/usr/lib/python3.11/threading.py:1112 join", "/app/train.py:65 main"};
#undef DIST

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 6> kNames{"Unknown",  "Starting", "Running",
                                                   "Stalling", "Stalled",  "Ended"};
  return kNames.at(static_cast<std::size_t>(phase));
}

Job::Job(std::int32_t count, Limits the_limits, std::int32_t ranks_per_pod)
    : limits(the_limits), now(std::chrono::hours(1000)), world(count) {
  watch.emplace(limits, now);
  for (std::int32_t i = 0; i < count; ++i) {
    Process process;
    process.rank = i;
    process.pid = 100 + i;
    const std::int32_t pod = i / ranks_per_pod;
    process.sender = {fmt::format("job-node-{}", pod), fmt::format("uid-{}", pod),
                      fmt::format("machine-{}", pod)};
    process.moved_at = now;
    process.frames = kItem;
    ranks.push_back(process);
  }
}

void Job::run(int seconds) {
  for (int i = 0; i < seconds; ++i) second();
}

void Job::stop(const Frames& others) {
  is_training_ = false;
  for (Process& process : ranks) {
    process.frames = others;
    process.cpu_rate = process.io_rate = 0;
    ++process.seq;
  }
}

void Job::leave(std::int32_t rank, const Frames& frames) {
  Process& process = ranks.at(static_cast<std::size_t>(rank));
  process.frames = frames;
  --process.seq;
}

void Job::without_sequence() {
  has_sequence_ = false;
}

void Job::set_network(Network network, std::uint32_t seed) {
  network_ = network;
  random_.seed(seed);
}

bool Job::draw(double chance) {
  return chance > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < chance;
}

bool Job::is_due(double phase) const {
  const auto period = static_cast<int>(limits.period.count());
  return clock_ % period == static_cast<int>(phase * period);
}

void Job::second() {
  now += std::chrono::seconds(1);
  ++clock_;
  for (Process& process : ranks) {
    process.cpu += process.cpu_rate;
    process.io += process.io_rate;
    if (!is_training_ || !process.is_heard) continue;
    ++process.steps;
    ++process.batches;
    ++process.seq;
    process.moved_at = now;
    process.gap = std::max(process.gap, 1.0);
    process.cpu += 0.9;
  }
  for (Process& process : ranks)
    if (process.is_heard && is_due(std::fmod(process.rank * 0.618, 1.0))) send_rank(process);
  if (has_agents_ && is_due(0.5)) {
    std::set<std::string> pods;
    for (const Process& process : ranks)
      if (pods.insert(process.sender.pod).second)
        send({agent_of(process.sender.pod, !agent_dump_.empty()), process.sender, -1});
    ++agents_sent_;
  }
  for (auto first = under_way_.begin(); first != under_way_.end() && first->first <= clock_;
       first = under_way_.begin()) {
    const Sent sent = std::move(first->second);
    under_way_.erase(first);
    deliver(sent);
  }
  if (is_due(0) && watch->decide(now)) {
    ++changes;
    verdicts.push_back(watch->verdict());
  }
}

void Job::send_rank(Process& process, const std::string& dump) {
  kube::Json message = message_of(process, dump);
  ++process.sent;
  if (process.says_bye) {
    message.set("bye", true);
    process.is_heard = false;
  }
  send({std::move(message), process.sender, process.rank});
}

void Job::send(Sent sent) {
  for (int copies = draw(network_.repeat) ? 2 : 1; copies > 0; --copies) {
    if (draw(network_.loss)) continue;
    const int late =
        network_.delay == 0 ? 0 : std::uniform_int_distribution<int>(0, network_.delay)(random_);
    under_way_.emplace(clock_ + late, sent);
  }
}

void Job::deliver(const Sent& sent) {
  const auto answer = watch->take(sent.message, sent.sender, now);
  if (!answer) throw std::runtime_error(answer.error().message);
  if (draw(network_.loss)) return;  // the answer is lost
  if (sent.rank < 0) {
    agent_dump_ = answer->dump;
    return;
  }
  Process& process = ranks.at(static_cast<std::size_t>(sent.rank));
  if (answer->dump.empty() || answer->dump == process.answered || process.never_dumps ||
      !process.is_heard)
    return;
  process.answered = answer->dump;
  send_rank(process, answer->dump);
}

kube::Json Job::message_of(const Process& process, const std::string& dump) const {
  const auto users = std::find_if(process.frames.begin(), process.frames.end(),
                                  [](const std::string& f) { return f.starts_with("/app/"); });
  kube::Json message =
      kube::Json::object({{"v", 1},
                          {"role", "rank"},
                          {"pid", process.pid},
                          {"born", process.born},
                          {"attempt", attempt},
                          {"restart", restart},
                          {"sent", process.sent},
                          {"rank", std::int64_t{process.rank}},
                          {"world", std::int64_t{world}},
                          {"steps", process.steps},
                          {"batches", process.batches},
                          {"seq", has_sequence_ ? process.seq : std::int64_t{-1}},
                          {"idle", std::chrono::duration<double>(now - process.moved_at).count()},
                          {"gap", process.gap},
                          {"own", -1},
                          {"top", users == process.frames.end() ? std::string() : *users},
                          {"leaf", process.frames.empty() ? std::string() : process.frames.front()},
                          {"cpu", process.cpu},
                          {"io", static_cast<std::int64_t>(process.io)}});
  if (dump.empty()) return message;
  kube::Json threads;
  const auto add = [&threads](const std::string& name, bool is_main, const Frames& frames) {
    threads.push_back(
        kube::Json::object({{"name", name},
                            {"main", is_main},
                            {"state", "S"},
                            {"wchan", "futex"},
                            {"frames", kube::Json::Array(frames.begin(), frames.end())}}));
  };
  add("MainThread", true, process.frames);
  for (const auto& [name, frames] : process.threads) add(name, false, frames);
  kube::Json children = kube::Json::array();
  for (const auto& [pid, text] : process.children)
    children.push_back(kube::Json::object({{"pid", pid},
                                           {"command", "python"},
                                           {"state", "S"},
                                           {"wchan", "pipe_read"},
                                           {"text", text}}));
  message.set("dump", kube::Json::object({{"id", dump},
                                          {"threads", std::move(threads)},
                                          {"children", std::move(children)}}));
  return message;
}

kube::Json Job::agent_of(const std::string& pod, bool has_text) const {
  kube::Json workers = kube::Json::array();
  for (const Process& process : ranks)
    if (process.sender.pod == pod)
      workers.push_back(
          kube::Json::object({{"rank", std::int64_t{process.rank}},
                              {"pid", process.pid},
                              {"born", process.born},
                              {"state", process.state},
                              {"text", has_text ? process.agent_text : std::string()}}));
  return kube::Json::object({{"v", 1},
                             {"role", "agent"},
                             {"pid", 50},
                             {"born", "a1"},
                             {"attempt", attempt},
                             {"restart", ""},
                             {"sent", agents_sent_},
                             {"workers", std::move(workers)}});
}

std::vector<std::int32_t> Job::suspects() const {
  std::vector<std::int32_t> found;
  for (const Suspect& suspect : watch->verdict().suspects) found.push_back(suspect.rank);
  return found;
}

}  // namespace trainer::stall::test
