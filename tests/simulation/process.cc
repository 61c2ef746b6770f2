#include "tests/simulation/process.hh"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "runtimes/plugins/registry.hh"

namespace trainer::simulation {
namespace {

Configuration configured() {
  Configuration configuration;
  configuration.expander.mode = JobSetControllerMode::kOwn;
  configuration.groupKindConcurrency = {{"TrainJob.trainer.kubeflow.org", 4},
                                        {"JobSet.jobset.x-k8s.io", 4}};
  return configuration;
}

void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

Process::Process(kube::asio::io_context& io, Timeline& timeline, ApiStore& store, Chance chance,
                 const Weather& weather, const Log& log, Wire::OnRequest on_request)
    : io_(io),
      jitter_(chance.fork()),
      configuration_(configured()),
      wire_(io, timeline, store, std::move(chance), weather, std::move(on_request)),
      client_(wire_, timeline, jitter_),
      control_(io, client_, configuration_, PipelineOptions(production_plugins()), metrics_, log) {
  control_.start_watching();
}

Process::~Process() = default;

void Process::tick() {
  if (is_started_ || is_gone_ || !control_.is_ready()) return;
  is_started_ = true;
  kube::asio::co_spawn(io_, control_.start_loops(), rethrow);
}

void Process::crash() {
  wire_.cut();
  is_started_ = true;
  kube::asio::co_spawn(io_, control_.drain(kube::Milliseconds(0)),
                       [this](std::exception_ptr error) {
                         rethrow(error);
                         is_gone_ = true;
                       });
}

}  // namespace trainer::simulation
