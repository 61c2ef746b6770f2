// Carries out plans. Knows the API's manners (whose is an object that exists already, what a
// conflict means), none of our rules.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/log.hh"
#include "controller/core/stores.hh"
#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/model/plan.hh"

namespace trainer {

// An action that failed, with the reason that its plan gave for the event.
struct ActionFailure {
  kube::Error error;
  std::string reason;
};

// Concurrency: the control loops' thread; several plans may be carried out at a time, each for
// another object.
class Executor {
 public:
  Executor(kube::asio::io_context& io, kube::ApiClient& client, Stores& stores, const Log& log,
           std::size_t max_in_flight);

  // Stage by stage, the actions of a stage side by side. The first error of a stage is the answer,
  // with the messages of those that follow from the same cause, a line each; it comes after the
  // whole stage has been tried, and later stages are then left out. Every answer enters the
  // stores.
  kube::Task<std::optional<ActionFailure>> run(std::vector<kube::Action> actions);

  // The status difference of one object, conditional on the version that was observed. kConflict:
  // somebody wrote in between, plan again.
  // `is_minor`: nothing follows from it, so the object need not be looked at again for it.
  kube::Task<kube::Result<void>> patch_status(kube::Resource resource, kube::ObjectKey key,
                                              std::string resource_version, kube::Json patch,
                                              bool is_minor);

  // More is to be written than may be at a time.
  bool is_crowded() const { return slots_.waiting() > 0; }

 private:
  kube::Task<std::optional<ActionFailure>> run_stage(std::vector<kube::Action> stage);
  kube::Task<kube::Result<void>> run_one(kube::Action action);
  kube::Task<kube::Result<void>> create(kube::Action action);
  kube::Task<kube::Result<void>> remove(kube::Action action);

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Stores& stores_;
  const Log& log_;
  kube::Semaphore slots_;  // statuses queue behind the creation of children
};

}  // namespace trainer
