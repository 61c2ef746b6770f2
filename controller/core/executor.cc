#include "controller/core/executor.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Semaphore;
using kube::Task;

// An event tells no more.
constexpr std::size_t kMaxMessage = 1'024;

std::string_view name_of(kube::Action::Verb verb) {
  switch (verb) {
    case kube::Action::Verb::kCreate:
      return "create";
    case kube::Action::Verb::kApply:
      return "apply";
    case kube::Action::Verb::kMergePatch:
      return "patch";
    case kube::Action::Verb::kDelete:
      return "delete";
  }
  return "write";
}

std::string describe(const kube::Action& action) {
  // In the words of JobSet's own event (jobset-contract 3.4).
  if (action.verb == kube::Action::Verb::kCreate && action.resource == kube::kJobs) {
    return fmt::format("job \"{}\" creation failed with error", action.key.name);
  }
  return fmt::format("{} {} {}", name_of(action.verb), action.resource.kind,
                     action.key.to_string());
}

// Who controls an object, for a message: "Job default/x (uid 1-2-3)" or "nobody".
std::string controller_of(const kube::ObjectMeta& meta) {
  const auto* owner = meta.controller();
  return owner ? fmt::format("{} {} (uid {})", owner->kind, owner->name, owner->uid) : "nobody";
}

// A kind that the cluster does not know is a 404 like any other, and says nothing of what is
// missing.
kube::Error explain(kube::Error error, const kube::Resource& resource) {
  const bool is_unknown_kind =
      error.code == ErrorCode::kNotFound &&
      (error.message.find("404 page not found") != std::string::npos ||
       error.message.find("could not find the requested resource") != std::string::npos);
  if (is_unknown_kind) {
    error.message = fmt::format(
        "the cluster does not serve {} of {}: install its CustomResourceDefinition, or take out of "
        "the runtime what asks for it",
        resource.kind, resource.api_version());
  }
  return error;
}

// A JobSet that is applied for the first time must not be there: without force, the fields that
// somebody else owns conflict.
bool may_force(const kube::Action& action) {
  return action.body.find_path({"metadata", "uid"}) != nullptr || action.resource.kind != "JobSet";
}

}  // namespace

Executor::Executor(kube::asio::io_context& io, kube::ApiClient& client, Stores& stores,
                   const Log& log, std::size_t max_in_flight)
    : io_(io), client_(client), stores_(stores), log_(log), slots_(max_in_flight) {}

Task<std::optional<ActionFailure>> Executor::run(std::vector<kube::Action> actions) {
  std::stable_sort(actions.begin(), actions.end(),
                   [](const kube::Action& a, const kube::Action& b) { return a.stage < b.stage; });
  auto at = actions.begin();
  while (at != actions.end()) {
    const int number = at->stage;
    std::vector<kube::Action> stage;
    for (; at != actions.end() && at->stage == number; ++at) stage.push_back(std::move(*at));
    auto failure = co_await run_stage(std::move(stage));
    if (failure) co_return failure;
  }
  co_return std::nullopt;
}

Task<std::optional<ActionFailure>> Executor::run_stage(std::vector<kube::Action> stage) {
  if (stage.size() == 1) {  // nearly always
    std::string reason = stage.front().failure_reason;
    kube::Action only = std::move(stage.front());
    auto done = co_await run_one(std::move(only));
    if (done) co_return std::nullopt;
    co_return ActionFailure{done.error(), std::move(reason)};
  }
  const auto spawn = [this](kube::Action action) {
    return kube::asio::co_spawn(io_, run_one(std::move(action)), kube::asio::deferred);
  };
  std::vector<std::string> reasons;
  std::vector<decltype(spawn(std::declval<kube::Action>()))> running;
  running.reserve(stage.size());
  for (auto& action : stage) {
    reasons.push_back(action.failure_reason);
    running.push_back(spawn(std::move(action)));
  }
  auto [order, exceptions, results] =
      co_await kube::asio::experimental::make_parallel_group(std::move(running))
          .async_wait(kube::asio::experimental::wait_for_all(), kube::asio::use_awaitable);
  for (const auto& exception : exceptions) {
    if (exception) std::rethrow_exception(exception);
  }
  std::optional<ActionFailure> failure;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) continue;
    if (!failure) {
      failure = ActionFailure{results[i].error(), reasons[i]};
    } else if (failure->reason == reasons[i] && failure->error.message.size() < kMaxMessage) {
      failure->error.message += "\n" + results[i].error().message;
    }
  }
  co_return failure;
}

Task<Result<void>> Executor::run_one(kube::Action action) {
  const auto slot = co_await slots_.acquire(Semaphore::kNoDeadline, Semaphore::Priority::kHigh);
  if (!slot) co_return tl::unexpected(slot.error());
  if (log_.is_debug()) log_.debug("write", {{"what", describe(action)}});
  const std::string what = describe(action);
  const kube::Resource resource = action.resource;
  Result<std::string> answer = kube::fail(ErrorCode::kInternal, "not sent");
  switch (action.verb) {
    case kube::Action::Verb::kCreate:
      co_return co_await create(std::move(action));
    case kube::Action::Verb::kDelete:
      co_return co_await remove(std::move(action));
    case kube::Action::Verb::kApply: {
      const bool force = may_force(action);
      answer = co_await client_.apply(action.resource, action.key, std::move(action.body),
                                      "trainer", force);
      break;
    }
    case kube::Action::Verb::kMergePatch:
      answer = co_await client_.merge_patch(action.resource, action.key, std::move(action.body),
                                            action.subresource);
      break;
  }
  if (!answer) co_return tl::unexpected(explain(answer.error(), resource).at(what));
  stores_.update_if_newer(resource, *answer);
  co_return Result<void>{};
}

Task<Result<void>> Executor::create(kube::Action action) {
  const std::string what = describe(action);
  auto answer = co_await client_.create(action.resource, std::move(action.body));
  if (answer) {
    stores_.update_if_newer(action.resource, *answer);
    co_return Result<void>{};
  }
  if (answer.error().code != ErrorCode::kAlreadyExists) {
    co_return tl::unexpected(answer.error().at(what));
  }
  // It stands already: ours from a write whose answer was lost, or somebody else's, which is never
  // adopted.
  auto existing = co_await client_.get(action.resource, action.key);
  if (!existing) co_return tl::unexpected(existing.error().at(what));
  const auto meta = kube::ObjectMeta::of(*existing);
  const auto* owner = meta.controller();
  const bool is_ours =
      action.owner_uid.empty() || (owner ? owner->uid == action.owner_uid : action.takes_unowned);
  if (!is_ours) {
    co_return kube::fail(ErrorCode::kAlreadyExists,
                         fmt::format("{}: an object of this name exists and is controlled by {}; "
                                     "it is left alone: delete or rename it, or rename the job",
                                     what, controller_of(meta)));
  }
  // Of what has an owner and is being deleted the watch tells the end. Claims have none, and are
  // not watched.
  if (action.owner_uid.empty() && meta.deletion_timestamp) {
    co_return kube::fail(ErrorCode::kAlreadyExists,
                         what +
                             ": one of this name is still being deleted; it is made anew once "
                             "that one is gone: end the pods that use it");
  }
  if (action.resource == kube::kConfigMaps || action.resource == kube::kSecrets) {
    // Not watched, and its content may differ from what this plan would have written: let it be
    // read before anything builds on it.
    co_return kube::fail(ErrorCode::kConflict, what + ": it was written before; reading it again");
  }
  stores_.update_if_newer(action.resource, kube::print_json(*existing));
  co_return Result<void>{};
}

Task<Result<void>> Executor::remove(kube::Action action) {
  kube::DeleteOptions options;
  options.propagation = action.propagation;
  options.uid = action.uid;
  auto answer = co_await client_.remove(action.resource, action.key, options);
  if (answer) {
    stores_.update_if_newer(action.resource, *answer);
    co_return Result<void>{};
  }
  const auto code = answer.error().code;
  // Conflict: another object of this name stands now; the one that was meant is gone.
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return Result<void>{};
  co_return tl::unexpected(answer.error().at(describe(action)));
}

Task<Result<void>> Executor::patch_status(kube::Resource resource, kube::ObjectKey key,
                                          std::string resource_version, kube::Json patch,
                                          bool is_minor) {
  const auto slot = co_await slots_.acquire(Semaphore::kNoDeadline, Semaphore::Priority::kLow);
  if (!slot) co_return tl::unexpected(slot.error());
  if (log_.is_debug()) {
    log_.debug("status", {{"object", resource.kind + " " + key.to_string()},
                          {"patch", kube::print_json(patch)}});
  }
  patch["metadata"].set("resourceVersion", std::move(resource_version));
  const auto sent = stores_.expect_status(resource, key);
  auto answer = co_await client_.merge_patch(resource, key, std::move(patch), "status");
  if (!answer) {
    stores_.give_up_status(*sent);
    if (answer.error().code == ErrorCode::kNotFound) co_return Result<void>{};
    if (answer.error().code == ErrorCode::kConflict) {
      // What stands is newer than what was planned from, perhaps by a write of our own whose answer
      // was lost. The watch may be long in telling, and other watches are not held up with it: a
      // plan from the old state would make again what the new one has ended.
      auto existing = co_await client_.get(resource, key);
      if (existing) stores_.update_if_newer(resource, kube::print_json(*existing));
    }
    co_return tl::unexpected(
        answer.error().at("status of " + resource.kind + " " + key.to_string()));
  }
  stores_.offer_status(*sent, *answer, is_minor);
  co_return Result<void>{};
}

}  // namespace trainer
