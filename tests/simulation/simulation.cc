#include "tests/simulation/simulation.hh"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "kube/model/json_text.hh"
#include "tests/simulation/cluster.hh"
#include "tests/simulation/expectation.hh"
#include "tests/simulation/oracle.hh"
#include "tests/simulation/process.hh"
#include "tests/simulation/script.hh"
#include "tests/simulation/users.hh"

namespace trainer::simulation {
namespace {

// If a job is not in its final state after this long without any fault, it will never be.
constexpr seconds kLongestQuiet{45 * 60};
// After this time everything that was still pending has arrived.
constexpr seconds kSettling{60};
// Unchanged objects are observed for this long.
constexpr seconds kWatching{120};

Weather any_weather(Chance& chance) {
  Weather weather;
  if (chance.percent(20)) return weather;
  weather.faults = chance.pick(std::vector<int>{0, 2, 10, 25});
  weather.slow_watches = chance.pick(std::vector<int>{0, 1, 5});
  weather.broken_watches = chance.pick(std::vector<int>{0, 1, 5});
  weather.expired_watches = chance.pick(std::vector<int>{0, 10, 50});
  weather.repeats = chance.pick(std::vector<int>{0, 5, 30});
  return weather;
}

class Run {
 public:
  Run(std::uint64_t seed, bool is_traced)
      : is_traced_(is_traced),
        log_(is_traced ? kube::LogLevel::kDebug : kube::LogLevel::kError, kube::Log::Format::kText),
        chance_(seed),
        store_(timeline_),
        oracle_(store_),
        script_(Script::of(chance_)),
        fates_(chance_.fork()),
        cluster_(timeline_, store_, chance_.fork(),
                 [this](const kube::Json& pod, int failures) {
                   return script_.decide(fates_, pod, failures);
                 }),
        expectation_(store_, script_),
        busy_(chance_.between(30, 180)),
        weather_(any_weather(chance_)),
        users_chance_(chance_.fork()) {
    store_.subscribe([this](const Change& change) { on_change(change); });
    if (is_traced_) trace_script();
    users_ = std::make_unique<Users>(timeline_, store_, oracle_, users_chance_, script_, busy_,
                                     [this](const std::string& what) { trace("a user " + what); });
    start();
    plan_trouble();
    timeline_.after(busy_ + seconds(1), [this] { calm_down(); });
  }

  Verdict run() {
    while (!is_done_ && !oracle_.violation()) {
      pump();
      if (process_ && process_->is_gone()) {
        process_.reset();
        timeline_.after(downtime_, [this] { start(); });
      }
      if (!timeline_.step()) oracle_.report("nothing is left to happen");
    }
    shut_down();
    verdict_.violation = oracle_.violation();
    verdict_.writes = oracle_.writes();
    verdict_.virtual_seconds = timeline_.elapsed().count() / 1'000'000;
    return verdict_;
  }

 private:
  void pump() {
    io_.restart();
    while (io_.poll() > 0) io_.restart();
    if (!process_) return;
    process_->tick();
    while (io_.poll() > 0) io_.restart();
  }

  // Nothing may be left in the io_context that borrows from objects that are destroyed first.
  void shut_down() {
    if (process_ && !is_crashing_) process_->crash();
    while (process_ && !process_->is_gone()) {
      pump();
      if (!process_->is_gone() && !timeline_.step()) break;
    }
    pump();
    process_.reset();
  }

  void start() {
    is_crashing_ = false;
    trace("the controller starts");
    process_ = std::make_unique<Process>(
        io_, timeline_, store_, chance_.fork(), weather_, log_,
        [this](const kube::HttpRequest& request) { on_request(request); });
  }

  void crash() {
    if (!process_ || is_crashing_) return;
    trace("the controller crashes");
    is_crashing_ = true;
    ++verdict_.crashes;
    downtime_ = chance_.wait(10, 8'000);
    process_->crash();
  }

  void plan_trouble() {
    const int busy_ms = static_cast<int>(milliseconds(busy_).count());
    for (int i = chance_.below(4); i > 0; --i) {
      timeline_.after(chance_.wait(0, busy_ms), [this] { crash(); });
    }
    for (int i = chance_.below(3); i > 0; --i) {
      timeline_.after(chance_.wait(0, busy_ms), [this] { forget_history(); });
    }
  }

  void forget_history() {
    trace("the API server forgets its history");
    for (const auto plural : {"trainjobs", "jobsets", "jobs", "pods", "services"}) {
      store_.compact(plural);
    }
    if (process_) process_->expire_watches();
  }

  void calm_down() {
    trace("the weather clears up");
    weather_ = Weather();
    await_end();
  }

  // Checks once a second whether everything is as the script says.
  void await_end() {
    const auto missing = expectation_.missing();
    if (!missing) return settle();
    if (timeline_.elapsed() > busy_ + kLongestQuiet)
      return oracle_.report("never ends: " + *missing);
    timeline_.after(seconds(1), [this] { await_end(); });
  }

  // The first restart repairs objects that are not watched: the next process finds that a snapshot
  // is missing that a user deleted. The second one has nothing left to do.
  void settle() {
    trace("everything is as it should be");
    timeline_.after(kSettling, [this] { crash(); });
    timeline_.after(2 * kSettling, [this] {
      trace("the controller and its watches start again; nothing may be written");
      writes_before_ = oracle_.writes();
      forget_history();
      crash();
      timeline_.after(kWatching, [this] { conclude(); });
    });
  }

  void conclude() {
    if (const auto missing = expectation_.missing()) {
      oracle_.report("did not stay as it was: " + *missing);
    } else if (oracle_.writes() != writes_before_) {
      oracle_.report(fmt::format("{} writes although nothing had changed; the last: {}",
                                 oracle_.writes() - writes_before_, oracle_.last_write()));
    }
    is_done_ = true;
  }

  void on_change(const Change& change) {
    const auto& object = change.after ? change.after : change.before;
    const std::string text = kube::print_json(*object);
    for (const char c : text) {
      verdict_.digest = (verdict_.digest ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    if (is_traced_ && change.resource.kind != "Event") trace_change(change);
    if (process_) process_->deliver(change);
  }

  void on_request(const kube::HttpRequest& request) {
    if (!is_traced_ || request.target.find("/events") != std::string::npos) return;
    trace(fmt::format("request {} {} {}", request.method, request.target,
                      request.method == "PATCH" ? request.body : ""));
  }

  void trace(const std::string& what) const {
    if (!is_traced_) return;
    const auto now = timeline_.elapsed().count() / 1'000;
    fmt::print(stderr, "{:4}.{:03} {}\n", now / 1'000, now % 1'000, what);
  }

  void trace_change(const Change& change) const {
    const std::string_view what = !change.before ? "created" : change.after ? "changed" : "gone";
    const auto& object = change.after ? change.after : change.before;
    const kube::Json* status = object->find("status");
    trace(fmt::format("  {} {} {} at {} by {} {}", change.resource.kind, change.key.to_string(),
                      what, kube::ObjectMeta::of(*object).resource_version, name_of(change.actor),
                      status ? kube::print_json(*status) : ""));
  }

  void trace_script() const {
    for (const Lineage& lineage : script_.lineages) {
      trace(fmt::format("{} is to be {} {} with {} restarts{}{}: {} {}", lineage.key.to_string(),
                        name_of(lineage.ending), lineage.reason, lineage.restarts,
                        lineage.is_deleted ? ", deleted" : "",
                        lineage.is_expiring ? ", removed after its end" : "",
                        kube::print_json(lineage.object), kube::print_json(lineage.runtime)));
    }
  }

  const bool is_traced_;
  const kube::Log log_;
  Chance chance_;
  kube::asio::io_context io_{1};
  Timeline timeline_;
  ApiStore store_;
  Oracle oracle_;
  const Script script_;
  Chance fates_;
  Cluster cluster_;
  Expectation expectation_;
  const seconds busy_;
  Weather weather_;
  Chance users_chance_;
  std::unique_ptr<Users> users_;
  std::unique_ptr<Process> process_;
  milliseconds downtime_{0};
  int writes_before_ = 0;
  bool is_crashing_ = false;
  bool is_done_ = false;
  Verdict verdict_;
};

}  // namespace

Verdict simulate(std::uint64_t seed, bool is_traced) {
  return Run(seed, is_traced).run();
}

}  // namespace trainer::simulation
