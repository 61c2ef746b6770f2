// Measures what the heartbeats of one large job cost the status server, and when a hang is found.
// The server is a process of its own; the ranks, and a stand-in for the API server, are here.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "tests/bench/controller_process.hh"
#include "tests/bench/heartbeats/ranks.hh"
#include "tests/bench/heartbeats/server.hh"

using namespace trainer::bench;
using kube::Task;

namespace {

struct Options {
  int world = 1'000;
  int threshold = 300;
  int warm = 15;
  int seconds = 100;
  bool has_own_network = false;
};

double seconds_since(Steady::time_point begun) {
  return std::chrono::duration<double>(Steady::now() - begun).count();
}

// The last line of the server's output that begins with `word`, without it.
std::string said(const std::string& log, const std::string& word) {
  std::ifstream file(log);
  std::string found;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(word + " ")) found = line.substr(word.size() + 1);
  return found;
}

// Bytes on the loopback interface, with the headers of IP and TCP.
double network_bytes() {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find("lo:");
    if (at != line.npos) return std::stod(line.substr(at + 3));
  }
  return 0;
}

// A stand-in for the API server, on a thread of its own so that it answers while the ranks send.
class Api {
 public:
  explicit Api(int threshold) {
    kube::ServerOptions options;
    options.address = "127.0.0.1";
    auto served =
        kube::serve(io_, std::move(options), [this, threshold](kube::ServerRequest request) {
          return answer(std::move(request), threshold);
        });
    if (!served) throw std::runtime_error(served.error().message);
    server_ = std::move(*served);
    thread_ = std::thread([this] { io_.run(); });
  }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api() {
    io_.stop();
    thread_.join();
  }
  std::string address() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }
  int reviews() const { return reviews_; }

 private:
  static constexpr std::chrono::milliseconds kLatency{5};  // It is that of a quick API server.

  Task<kube::ServerResponse> answer(kube::ServerRequest request, int threshold) {
    if (request.method == "POST") ++reviews_;
    co_await kube::sleep(clock_, kLatency);
    co_return answer_as_api(request, threshold);
  }

  kube::asio::io_context io_{1};
  kube::SystemClock clock_;
  std::unique_ptr<kube::HttpServer> server_;
  std::atomic<int> reviews_{0};
  std::thread thread_;
};

class Measurement {
 public:
  Measurement(kube::asio::io_context& io, const Options& options, const std::string& log)
      : io_(io), options_(options), log_(log), api_(options.threshold) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    process_ = std::make_unique<ControllerProcess>(
        std::vector<std::string>{self, "--serve", api_.address()}, log);
  }

  // Returns how many goals were missed.
  Task<int> run() {
    while (said(log_, "listening").empty()) co_await kube::sleep(clock_, kTick);
    const auto port = static_cast<unsigned short>(std::stoi(said(log_, "listening")));
    figure("memory of the server before them", process_->usage().rss_mb, "MB");
    ranks_ = std::make_unique<Ranks>(io_, options_.world, port);
    kube::asio::co_spawn(io_, ranks_->run(), [](std::exception_ptr) {});
    // The tokens of all pods are verified first, four at a time, and heartbeats wait for that.
    co_await measure(fmt::format("first {} s", options_.warm), options_.warm, false);
    co_await kube::sleep(clock_, kPause);
    co_await measure("later", options_.seconds, true);
    figure("memory of the server with them", process_->usage().rss_mb, "MB", 128);
    figure("TokenReviews", api_.reviews(), "");
    const double before = process_->usage().cpu_seconds;
    co_await measure_hang();
    figure("processor time in the hang", process_->usage().cpu_seconds - before, "s");
    figure("memory of the server in the hang", process_->usage().peak_mb, "MB");
    co_await ranks_->stop();
    process_->stop();
    co_return missed_;
  }

 private:
  static constexpr std::chrono::milliseconds kTick{100};
  static constexpr std::chrono::seconds kPause{15};  // Those that waited at first end.

  void figure(const std::string& what, double value, const std::string& unit, double most = 0) {
    const bool is_missed = most > 0 && value > most;
    missed_ += is_missed ? 1 : 0;
    fmt::print("  {:<60} {:>9.{}f} {:<6}{}\n", fmt::format("{} ranks, {}", options_.world, what),
               value, value < 10 ? 2 : 1, unit,
               most == 0 ? "" : fmt::format(" goal <= {:g}{}", most, is_missed ? " MISSED" : ""));
    std::fflush(stdout);
  }

  Task<void> measure(std::string when, int seconds, bool has_goals) {
    ranks_->take_seen();
    const auto begun = Steady::now();
    const double cpu = process_->usage().cpu_seconds;
    const double bytes = network_bytes();
    co_await kube::sleep(clock_, std::chrono::seconds(seconds));
    const double took = seconds_since(begun);
    const double used = process_->usage().cpu_seconds - cpu;
    const double moved = network_bytes() - bytes;
    Seen seen = ranks_->take_seen();
    const auto count = static_cast<double>(seen.seconds.size());
    if (count == 0) throw std::runtime_error("nothing was sent");
    std::sort(seen.seconds.begin(), seen.seconds.end());
    const auto late =
        seen.seconds.end() - std::upper_bound(seen.seconds.begin(), seen.seconds.end(), 1.0);
    period_ = static_cast<double>(seen.period);
    figure(when + ": period", period_, "s");
    figure(when + ": heartbeats a second", count / took, "");
    figure(when + ": processor of the server", 100 * used / took, "%", has_goals ? 50 : 0);
    figure(when + ": processor time of a heartbeat", 1'000 * used / count, "ms");
    if (options_.has_own_network) {
      figure(when + ": bytes of a heartbeat, both ways", moved / count, "");
      figure(when + ": bytes a second, both ways", moved / took / 1e6, "MB");
    }
    figure(when + ": answered, median", 1'000 * seen.seconds[seen.seconds.size() / 2], "ms");
    figure(when + ": not answered within a second", 100 * double(late) / count, "%",
           has_goals ? 1 : 0);
    figure(when + ": refused or not answered", double(seen.refused + seen.failed), "");
  }

  Task<void> measure_hang() {
    ranks_->hang();
    const auto limit = std::chrono::seconds(3 * options_.threshold + 300);
    while (said(log_, "stalled").empty() && Steady::now() - *ranks_->hangs_since() < limit)
      co_await kube::sleep(clock_, kTick);
    std::istringstream words(said(log_, "stalled"));
    int rank = -1;
    std::int64_t at = 0;
    if (!(words >> rank >> at) || rank != kStuckRank)
      throw std::runtime_error(fmt::format("rank {} is not named, but {}", kStuckRank, rank));
    const std::chrono::duration<double> after =
        Steady::time_point(Steady::duration(at)) - *ranks_->hangs_since();
    // A rank says that it stopped with its next heartbeat, so the time begins up to a period later.
    figure(fmt::format("verdict after the threshold of {} s", options_.threshold),
           after.count() - options_.threshold, "s", period_ + 10);
  }

  kube::asio::io_context& io_;
  const Options options_;
  const std::string log_;
  kube::SystemClock clock_;
  Api api_;
  std::unique_ptr<ControllerProcess> process_;
  std::unique_ptr<Ranks> ranks_;
  double period_ = 0;
  int missed_ = 0;
};

int measure(const Options& options, const std::string& log) {
  kube::asio::io_context io{1};
  Measurement measurement(io, options, log);
  int missed = -1;
  kube::asio::co_spawn(io, measurement.run(), [&](std::exception_ptr error, int result) {
    io.stop();
    missed = result;
    if (error) std::rethrow_exception(error);
  });
  io.run();
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"Measures what the heartbeats of one job cost the status server."};
  Options options;
  std::string api;
  std::string log = "/dev/null";
  app.add_option("--serve", api, "Be the server, with this address of the API server");
  app.add_option("--log", log, "Where the server's output goes");
  app.add_option("--ranks", options.world, "Ranks of the job")->check(CLI::Range(100, 16'384));
  app.add_option("--threshold", options.threshold, "Seconds without a step that are a hang");
  app.add_option("--warm", options.warm, "Seconds of the first measurement");
  app.add_option("--seconds", options.seconds, "Seconds of the second measurement");
  app.add_flag("--own-network", options.has_own_network, "Nothing else uses the loopback");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!api.empty()) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      serve_heartbeats(api);
      return 0;
    }
    return measure(options, log);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
