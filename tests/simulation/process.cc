#include "tests/simulation/process.hh"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/kinds/registry.hh"

namespace trainer::simulation {
namespace {

std::vector<kube::ControllerRegistration> controllers() {
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kOwn;
  return controllers_of(production_registry(options));
}

kube::ManagerOptions manager_options() {
  kube::ManagerOptions options;
  options.component = "trainer";
  options.concurrency = [](std::string_view, int) { return 4; };
  return options;
}

void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

Process::Process(kube::asio::io_context& io, Timeline& timeline, ApiStore& store, Chance chance,
                 const Weather& weather, const kube::Log& log, Wire::OnRequest on_request)
    : io_(io),
      jitter_(chance.fork()),
      wire_(io, timeline, store, std::move(chance), weather, std::move(on_request)),
      client_(wire_, timeline, jitter_),
      manager_(io, client_, controllers(), manager_options(), metrics_, log) {
  manager_.start_watching();
}

Process::~Process() = default;

void Process::tick() {
  if (is_started_ || is_gone_ || !manager_.is_ready()) return;
  is_started_ = true;
  kube::asio::co_spawn(io_, manager_.start_workers(), rethrow);
}

void Process::crash() {
  wire_.cut();
  is_started_ = true;
  kube::asio::co_spawn(io_, manager_.drain(kube::Milliseconds(0)),
                       [this](std::exception_ptr error) {
                         rethrow(error);
                         is_gone_ = true;
                       });
}

}  // namespace trainer::simulation
