#include "kube/manager/executor.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "kube/manager/pacing.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace kube {
namespace {

// This is the API server's limit for the message of an event.
constexpr std::size_t kMaxMessage = 1'024;

// The words of Action::Verb.
constexpr const char* kVerbs[] = {"create", "apply", "patch", "delete"};

std::string describe(const Action& action) {
  if (!action.description.empty()) return action.description;
  return fmt::format("{} {} {}", kVerbs[static_cast<std::size_t>(action.verb)],
                     action.resource.kind, action.key.to_string());
}

// If the cluster does not serve a kind, the 404 does not name the kind.
Error explain(Error error, const Resource& resource) {
  const bool is_unknown_kind =
      error.code == ErrorCode::kNotFound &&
      (error.message.find("404 page not found") != std::string::npos ||
       error.message.find("could not find the requested resource") != std::string::npos);
  if (is_unknown_kind) {
    // The groups of Kubernetes itself end like this, and those of most definitions do not.
    const bool is_built_in = resource.group.ends_with(".k8s.io");
    error.message = fmt::format(
        "the cluster does not serve {} of {}: {}, or take out of the runtime what asks for it",
        resource.kind, resource.api_version(),
        is_built_in ? "switch it on in the API server (--runtime-config, --feature-gates)"
                    : "install its CustomResourceDefinition");
  }
  return error;
}

// Such an object may be gone this long before that is seen: the end of a claim, or of a Service of
// another object, starts no reconcile.
constexpr std::chrono::seconds kUnseen{60};

tl::unexpected<Error> refuse(const Action& action, std::string why) {
  Error error(ErrorCode::kAlreadyExists, std::move(why));
  if (action.resource == kPersistentVolumeClaims || action.resource == kServices)
    error.retry_within = kUnseen;
  return tl::unexpected(std::move(error));
}

}  // namespace

bool Executor::is_under_load() {
  const auto now = client_.clock().steady();
  if (writes_.waiting() > 0) under_load_until_ = now + Pacing::kLoadCooldown;
  return now < under_load_until_;
}

Task<bool> Executor::is_gone(Resource resource, ObjectKey key, std::string uid) {
  if (!caches_.is_interrupted(resource)) co_return false;
  const auto object = co_await client_.get(resource, key);
  if (!object) co_return object.error().code == ErrorCode::kNotFound;
  const auto meta = ObjectMeta::of(*object);
  co_return meta.uid != uid || meta.deletion_timestamp;
}

Task<Executor::Outcome> Executor::run(std::vector<Action> actions) {
  Outcome outcome;
  std::stable_sort(actions.begin(), actions.end(),
                   [](const Action& a, const Action& b) { return a.stage < b.stage; });
  auto at = actions.begin();
  while (at != actions.end()) {
    const int number = at->stage;
    std::vector<Action> stage;
    for (; at != actions.end() && at->stage == number; ++at) stage.push_back(std::move(*at));
    Outcome ended = co_await run_stage(std::move(stage));
    outcome.has_changed = outcome.has_changed || ended.has_changed;
    outcome.failure = std::move(ended.failure);
    if (outcome.failure) break;
  }
  co_return outcome;
}

Task<Executor::Outcome> Executor::run_stage(std::vector<Action> stage) {
  Outcome outcome;
  if (stage.size() == 1) {  // nearly always
    std::string reason = stage.front().failure_reason;
    Resource resource = stage.front().resource;
    std::string name = stage.front().key.name;
    Action only = std::move(stage.front());
    auto done = co_await run_one(std::move(only));
    if (done) {
      outcome.has_changed = *done;
    } else {
      outcome.failure =
          ActionFailure{done.error(), std::move(reason), std::move(resource), std::move(name)};
    }
    co_return outcome;
  }
  const auto spawn = [this](Action action) {
    return asio::co_spawn(io_, run_one(std::move(action)), asio::deferred);
  };
  struct Write {
    std::string reason;
    Resource resource;
    std::string name;
  };
  std::vector<Write> written;
  std::vector<decltype(spawn(std::declval<Action>()))> running;
  running.reserve(stage.size());
  for (auto& action : stage) {
    written.push_back({action.failure_reason, action.resource, action.key.name});
    running.push_back(spawn(std::move(action)));
  }
  auto [order, exceptions, results] =
      co_await asio::experimental::make_parallel_group(std::move(running))
          .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (const auto& exception : exceptions) {
    if (exception) std::rethrow_exception(exception);
  }
  auto& failure = outcome.failure;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      outcome.has_changed = outcome.has_changed || *results[i];
    } else if (!failure) {
      failure = ActionFailure{results[i].error(), written[i].reason, written[i].resource,
                              written[i].name};
    } else {
      const Error& other = results[i].error();
      if (failure->reason == written[i].reason && failure->error.message.size() < kMaxMessage)
        failure->error.message += "\n" + other.message;
      auto& within = failure->error.retry_within;
      if (other.retry_within) within = std::min(within.value_or(kUnseen), *other.retry_within);
    }
  }
  co_return outcome;
}

Task<Result<bool>> Executor::run_one(Action action) {
  const auto permit =
      co_await writes_.acquire(Semaphore::kNoDeadline, Semaphore::Priority::kHigh, action.key.ns);
  if (!permit) co_return tl::unexpected(permit.error());
  if (log_.is_debug()) log_.debug("write", {{"what", describe(action)}});
  const std::string what = describe(action);
  const Resource resource = action.resource;
  Result<Written> answer = fail(ErrorCode::kInternal, "not sent");
  const auto take = [&answer](Result<std::string> written) {
    if (written) {
      answer = Written(std::move(*written), true);
    } else {
      answer = tl::unexpected(written.error());
    }
  };
  switch (action.verb) {
    case Action::Verb::kCreate:
      answer = co_await create(std::move(action));
      break;
    case Action::Verb::kDelete:
      answer = co_await remove(std::move(action));
      break;
    case Action::Verb::kApply:
      take(co_await client_.apply(action.resource, action.key, std::move(action.body),
                                  field_manager_,
                                  action.owned_fields == Action::OwnedFields::kTakeOver));
      break;
    case Action::Verb::kMergePatch:
      take(co_await client_.merge_patch(action.resource, action.key, std::move(action.body),
                                        action.subresource));
      break;
  }
  if (!answer) co_return tl::unexpected(explain(answer.error(), resource).at(what));
  if (!answer->object.empty()) caches_.update_if_newer(resource, answer->object);
  co_return answer->is_changed;
}

Task<Result<Executor::Written>> Executor::create(Action action) {
  auto answer = co_await client_.create(action.resource, std::move(action.body));
  if (answer) co_return Written(std::move(*answer), true);
  if (answer.error().code != ErrorCode::kAlreadyExists) co_return tl::unexpected(answer.error());
  const auto existing = co_await client_.get(action.resource, action.key);
  if (!existing) co_return tl::unexpected(existing.error());
  const auto accepted = accept_existing(action, *existing);
  if (!accepted) co_return tl::unexpected(accepted.error());
  co_return Written(print_json(*existing), false);
}

// If the answer to an earlier create was lost, the object has its owner already. An object of
// another controller is never adopted.
Result<void> Executor::accept_existing(const Action& action, const Json& existing) {
  const auto meta = ObjectMeta::of(existing);
  const auto* owner = meta.controller();
  // Any other object that is being deleted is accepted from its owner: a watch event reports its
  // end.
  if (action.resource == kPersistentVolumeClaims && meta.deletion_timestamp) {
    return refuse(action,
                  "one of this name is still being deleted; it is created again once that one is "
                  "gone: end the pods that use it");
  }
  const bool is_owned =
      action.owner_uid.empty() ||
      (owner ? owner->uid == action.owner_uid : action.unowned == Action::Unowned::kAccept);
  if (!is_owned) {
    const std::string by = owner
                               ? fmt::format("{} {} (uid {})", owner->kind, owner->name, owner->uid)
                               : "no controller";
    return refuse(action, fmt::format("an object of this name exists and is controlled by {}; "
                                      "it is left alone: delete or rename it, or rename the job",
                                      by));
  }
  // ConfigMaps and Secrets are not watched, and the content may differ from the plan's.
  if (action.resource == kConfigMaps || action.resource == kSecrets) {
    return fail(ErrorCode::kConflict, "it was written before; reading it again");
  }
  return {};
}

Task<Result<Executor::Written>> Executor::remove(Action action) {
  DeleteOptions options;
  options.propagation = action.propagation;
  options.uid = action.uid;
  auto answer = co_await client_.remove(action.resource, action.key, options);
  // A conflict says that another object has this name now, and that the one to delete is gone.
  const bool is_gone = !answer && (answer.error().code == ErrorCode::kNotFound ||
                                   answer.error().code == ErrorCode::kConflict);
  if (is_gone) co_return Written(std::string(), false);
  if (!answer) co_return tl::unexpected(answer.error());
  co_return Written(std::move(*answer), true);
}

}  // namespace kube
