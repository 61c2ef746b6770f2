// These are events of watches and reconciles, through the whole controller: nothing here depends on
// its parts except the class Controller.
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "controller/kinds/registry.hh"
#include "controller/process/metrics.hh"
#include "kube/manager/manager.hh"
#include "tests/instructions/figures.hh"
#include "tests/instructions/objects.hh"
#include "tests/instructions/server.hh"
#include "tests/simulation/timeline.hh"

namespace trainer::instructions {
namespace {

class FixedRandom final : public kube::Random {
 public:
  std::uint64_t next() override { return std::uint64_t{1} << 63; }
};

std::vector<kube::ControllerRegistration> controllers() {
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kOwn;
  return controllers_of(production_registry(options));
}

kube::ManagerOptions manager_options() {
  kube::ManagerOptions options;
  options.component = "trainer";
  return options;
}

// These are production's watches, caches, queues and reconcilers, with a server and a clock that do
// not move.
class Controller {
 public:
  Controller() {
    manager_.start_watching();
    poll();
    if (!manager_.is_ready()) fail("the caches were not filled");
  }
  // Nothing is freed: pending work borrows from all of it.
  ~Controller() = delete;

  void start_workers() {
    kube::asio::co_spawn(io_, manager_.start_workers(), [](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);
    });
    advance(kube::Milliseconds(60'000));
  }
  void push(std::string_view plural, std::string_view line) {
    server_.push(plural, line);
    poll();
  }
  void poll() {
    do io_.restart();
    while (io_.poll() > 0);
  }
  // Moves the clock, and does what is due by then.
  void advance(kube::Milliseconds by) {
    poll();
    bool is_over = false;
    timeline_.after(by, [&] { is_over = true; });
    while (!is_over && timeline_.step()) poll();
  }
  const Server& server() const { return server_; }

 private:
  kube::asio::io_context io_;
  simulation::Timeline timeline_;
  Server server_{io_};
  FixedRandom random_;
  kube::ApiClient client_{server_, timeline_, random_};
  Metrics metrics_;
  kube::Log log_{kube::LogLevel::kWarn, kube::Log::Format::kText};
  kube::Manager manager_{io_, client_, controllers(), manager_options(), metrics_, log_};
};

// A line of a watch that brings an object in ever newer versions, with nothing else changed.
class Event {
 public:
  explicit Event(std::string_view object) {
    constexpr std::string_view kMember = R"("resourceVersion":")";
    std::string text = object_text(object);
    const auto begin = text.find(kMember) + kMember.size();
    text.replace(begin, text.find('"', begin) - begin, "1000000");
    line_ = R"({"type":"MODIFIED","object":)" + text + "}\n";
    version_ = line_.find("1000000");
  }
  const std::string& next() {
    for (auto digit = version_ + 6; ++line_[digit] > '9'; --digit) line_[digit] = '0';
    return line_;
  }
  // Changes one character of every further version.
  void replace(std::string_view text, char by) {
    const auto at = line_.find(text);
    if (at == std::string::npos) fail(fmt::format("no {} in {}", text, line_));
    line_[at + text.size() - 1] = by;
  }

 private:
  std::string line_;
  std::size_t version_ = 0;
};

// Events of Pods and Jobs that follow each other within less than this are read together.
constexpr kube::Milliseconds kReadTogether{100};

void take_in(std::string_view plural, std::string_view object, int times) {
  auto& controller = *new Controller;
  Event event(object);
  const int requests = controller.server().requests();
  for (int i = 0; i < times; ++i) {
    controller.push(plural, event.next());
    controller.advance(kReadTogether);
  }
  if (controller.server().requests() != requests) fail("a request although no worker runs");
}

// These are as many rounds as the controller asks for until it has settled; it must ask for nothing
// then.
template <class Change>
void reconcile(int times, const Change& change) {
  auto& controller = *new Controller;
  controller.start_workers();
  for (int i = 0; i < 4; ++i) change(controller);
  const int requests = controller.server().requests();
  for (int i = 0; i < times; ++i) change(controller);
  if (controller.server().requests() == requests) return;
  fail("an unchanged object costs requests: " + controller.server().last_request());
}

}  // namespace

void watch_pod(int times) {
  take_in("pods", "pod-1", times);
}
void watch_job(int times) {
  take_in("jobs", "job", times);
}
void watch_jobset(int times) {
  take_in("jobsets", "jobset", times);
}
void watch_trainjob(int times) {
  take_in("trainjobs", "trainjob", times);
}

void reconcile_jobset(int times) {
  Event event("jobset");
  reconcile(times, [&](Controller& controller) { controller.push("jobsets", event.next()); });
}

void reconcile_trainjob(int times) {
  Event event("trainjob");
  reconcile(times, [&](Controller& controller) { controller.push("trainjobs", event.next()); });
}

void reconcile_after_pod(int times) {
  Event event("pod-1");
  bool is_restarted = false;
  reconcile(times, [&](Controller& controller) {
    event.replace(is_restarted ? R"("restartCount":1)" : R"("restartCount":0)",
                  is_restarted ? '0' : '1');
    is_restarted = !is_restarted;
    controller.push("pods", event.next());
    controller.advance(kube::Milliseconds(2'000));
  });
}

}  // namespace trainer::instructions
