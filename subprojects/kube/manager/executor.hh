// Runs the actions of plans. It applies the API's rules (who owns an existing object, what a
// conflict means); the rules of kinds are elsewhere.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/manager/cache_set.hh"
#include "kube/manager/log.hh"
#include "kube/model/plan.hh"

namespace kube {

// This action failed; the plan gave the reason for the event.
struct ActionFailure {
  Error error;
  std::string reason;
  Resource resource;  // the resource of the object that was to be written
  std::string name;   // its name
};

// Concurrency: the control loops' thread; several plans may run at a time, each for another object.
class Executor {
 public:
  // `field_manager` is the one of server-side applies. `writes` bounds the writes in flight.
  Executor(asio::io_context& io, ApiClient& client, CacheSet& caches, Semaphore& writes,
           std::string field_manager, const Log& log)
      : io_(io),
        client_(client),
        caches_(caches),
        writes_(writes),
        field_manager_(std::move(field_manager)),
        log_(log) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  struct Outcome {
    // This is the first error of a stage, together with the messages of errors with the same
    // reason, a line each.
    std::optional<ActionFailure> failure;
    // It is false if all objects to create exist already, and all objects to delete are gone
    // already: the same plan would follow again.
    bool has_changed = false;
  };

  // Runs one stage after the other, and the actions of a stage concurrently. After an error the
  // rest of the stage is still tried, and later stages are skipped. Every answer enters the caches.
  Task<Outcome> run(std::vector<Action> actions);

  // Returns whether a cached object is gone, or another one of its name exists, or it is being
  // deleted. Asks the API server while the watch of the kind is interrupted; else it answers no,
  // without a request.
  Task<bool> is_gone(Resource resource, ObjectKey key, std::string uid);

  // Returns whether writes wait for the semaphore, or did so within Pacing::kLoadCooldown.
  bool is_under_load();

 private:
  struct Written {
    std::string object;  // the JSON text of the object as it is now; "" if it is gone
    bool is_changed = true;
    Written(std::string object_, bool is_changed_)
        : object(std::move(object_)), is_changed(is_changed_) {}
  };

  Task<Outcome> run_stage(std::vector<Action> stage);
  // Returns whether the action changed anything.
  Task<Result<bool>> run_one(Action action);
  Task<Result<Written>> create(Action action);
  Task<Result<Written>> remove(Action action);
  // Returns whether an object that exists already can be used instead of the one to create.
  Result<void> accept_existing(const Action& action, const Json& existing);

  asio::io_context& io_;
  ApiClient& client_;
  CacheSet& caches_;
  Semaphore& writes_;
  std::string field_manager_;
  const Log& log_;
  std::chrono::steady_clock::time_point under_load_until_{};
};

}  // namespace kube
