#include "tests/bench/heartbeats/ranks.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "kube/client/kubeconfig.hh"
#include "kube/model/json_text.hh"

namespace trainer::bench {

using kube::Task;

namespace {

constexpr std::int64_t kFirstPeriod = 15;
constexpr std::int64_t kLongestPeriod = 300;
constexpr std::chrono::seconds kLimit{10};

std::unique_ptr<kube::ClientTls> make_tls() {
  kube::ClientConfig config;
  config.insecure_skip_tls_verify = true;  // it costs only the sender
  auto tls = kube::ClientTls::make(config, "127.0.0.1");
  if (!tls) throw std::runtime_error(tls.error().message);
  return std::move(*tls);
}

}  // namespace

Ranks::Ranks(kube::asio::io_context& io, int world, unsigned short port)
    : server_(kube::asio::ip::make_address("127.0.0.1"), port),
      tls_(make_tls()),
      world_(world),
      begun_(Steady::now()),
      tasks_(io.get_executor(), [](std::string_view task, std::string_view what) {
        fmt::print(stderr, "{}: {}\n", task, what);
      }) {
  const int pods = (world + kRanksOfPod - 1) / kRanksOfPod;
  for (int pod = 0; pod < pods; ++pod) {
    tokens_.push_back(token_of(pod));
    add(-1, pod, pod + 0.5);
  }
  for (int rank = 0; rank < world; ++rank) add(rank, rank / kRanksOfPod, rank);
}

void Ranks::add(int rank, int pod, double phase) {
  const double part = std::fmod(phase * 0.618, 1.0);
  const std::chrono::duration<double> wait(std::max(0.1, part) * double(kFirstPeriod));
  due_.push({begun_ + std::chrono::duration_cast<Steady::duration>(wait), reporters_.size()});
  reporters_.push_back({rank, pod, 0, {}});
  periods_.push_back(kFirstPeriod);
  phases_.push_back(part);
}

Task<void> Ranks::run() {
  constexpr std::chrono::milliseconds kShortestSleep{1};
  constexpr std::chrono::milliseconds kLongestSleep{50};
  // One thread that answers thousands of handshakes at once would be slower than their processes,
  // and the server's connections would wait for it.
  constexpr int kMostAtOnce = 200;
  while (!is_over_) {
    const auto now = Steady::now();
    for (; !due_.empty() && due_.top().at <= now && running_ < kMostAtOnce; due_.pop()) {
      ++running_;
      tasks_.spawn("heartbeat", beat(due_.top()));
    }
    const auto wait = due_.empty() ? kLongestSleep : due_.top().at - now;
    co_await kube::sleep(clock_, std::clamp<Steady::duration>(wait, kShortestSleep, kLongestSleep));
  }
}

void Ranks::hang() {
  hangs_since_ = Steady::now();
}

Training Ranks::training() const {
  const auto moved = hangs_since_ ? *hangs_since_ : Steady::now();
  const std::chrono::duration<double> idle = Steady::now() - moved;
  const auto steps = std::chrono::duration_cast<std::chrono::seconds>(moved - begun_).count();
  return {world_, steps, idle.count(), hangs_since_.has_value()};
}

Task<void> Ranks::beat(Due due) {
  Reporter& reporter = reporters_[due.reporter];
  std::int64_t& period = periods_[due.reporter];
  const auto answer = co_await send(due.reporter, {});
  seen_.seconds.push_back(std::chrono::duration<double>(Steady::now() - due.at).count());
  double wait = static_cast<double>(period);
  if (answer && answer->status == 200) {
    const auto longer = static_cast<double>(answer->period - period);
    wait += longer > 0 ? longer * phases_[due.reporter] : longer;
    seen_.period = period = answer->period;
  } else if (answer) {
    ++seen_.refused;
    period = std::min(2 * period, kLongestPeriod);
    wait = static_cast<double>(period);
  } else {
    ++seen_.failed;
  }
  const std::chrono::duration<double> until(wait);
  due_.push({due.at + std::chrono::duration_cast<Steady::duration>(until), due.reporter});
  if (answer && !answer->dump.empty() && answer->dump != reporter.answered) {
    const auto taken = co_await send(due.reporter, answer->dump);
    if (taken && taken->status == 200) reporter.answered = answer->dump;
  }
  --running_;
}

Task<std::optional<Ranks::Answer>> Ranks::send(std::size_t number, std::string dump) {
  Reporter& reporter = reporters_[number];
  const std::string body = message_of(reporter, training(), dump);
  ++reporter.sent;
  const std::string text = co_await exchange(fmt::format(
      "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n{}",
      heartbeat_path(), body.size(), tokens_[static_cast<std::size_t>(reporter.pod)], body));
  if (text.size() < 12) co_return std::nullopt;
  Answer answer;
  answer.status = std::stoi(text.substr(9, 3));
  const auto json = kube::parse_json(text.substr(text.find("\r\n\r\n") + 4));
  if (json) {
    answer.period = json->get_int("period");
    answer.dump = json->get_string("dump");
  }
  co_return answer;
}

Task<std::string> Ranks::exchange(std::string request) {
  // A reporter is a process of its own, with no earlier session of TLS.
  tls_->keep(nullptr);
  std::vector<kube::asio::ip::tcp::endpoint> addresses(1, server_);
  auto stream =
      co_await kube::connect_stream(std::move(addresses), tls_.get(), Steady::now() + kLimit);
  if (!stream) co_return std::string();
  const auto written = co_await (*stream)->write_all(request);
  std::string text;
  std::array<char, 4096> buffer{};
  while (!written.error) {
    const auto read = co_await (*stream)->read_some(buffer.data(), buffer.size());
    if (read.error || read.bytes == 0) break;
    text.append(buffer.data(), read.bytes);
  }
  (*stream)->close();
  co_return text;
}

Task<void> Ranks::stop() {
  is_over_ = true;
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace trainer::bench
