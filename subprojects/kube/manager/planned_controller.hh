// The frame of a controller that reconciles its objects by plans: it finds and decodes the object,
// has it planned, reads what the plan lacks and has it planned again, runs the plan, and remembers
// what was read and written. A kind supplies what is observed, the plan, and the facts for metrics.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/client/yield.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/decoded_objects.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/last_warning.hh"
#include "kube/manager/plan_runner.hh"
#include "kube/model/field_error.hh"
#include "kube/model/named_objects.hh"
#include "kube/model/plan.hh"
#include "kube/model/unreadable.hh"

namespace kube {

// The memory of one object is kept between its reconciles. A kind adds its own members by deriving
// from it.
struct ObjectMemory {
  NamedObjects objects;  // objects that plans have asked for, or have written, and no watch shows
  LastWarning warning;   // the warning about the object that a plan has asked for
};

// `Decoded`: what an object's text is decoded into. `Memory`: ObjectMemory, or derived from it.
// `PlanOf`: Plan, or derived from it.
// Concurrency: that of Controller.
template <class Decoded, class Memory = ObjectMemory, class PlanOf = Plan>
class PlannedController : public Controller {
 public:
  using Stored = std::shared_ptr<const StoredObject>;

  Task<Result<Requeue>> reconcile(ObjectKey key) final {
    Stored stored = objects_.find(key);
    if (stored && stored->body.size() >= kLargeText) {
      co_await yield();
      stored = objects_.find(key);
    }
    if (!stored) co_return co_await reconcile_gone(std::move(key));
    if (!is_reconciled(*stored)) co_return Requeue{};
    Subject subject{stored, decoded_->of(stored), memory_of(stored->uid)};
    subject.memory->objects.age();
    subject.memory->warning.is_new = false;
    measure(subject);
    if (const FieldErrors* errors = errors_of(*subject.decoded))
      co_return co_await context_.plan_runner.run(ref_of(subject),
                                                  plan_unreadable(subject, *errors));
    auto made = co_await complete_plan(subject);
    if (!made) co_return tl::unexpected(made.error());
    // Deleted during the reads: nothing would delete a child that is created now.
    if (!is_current(subject)) co_return Requeue{};
    co_return co_await run(std::move(subject), std::move(*made));
  }

  void forget(const std::string& uid) override { memories_.erase(uid); }

  // A handler of a collection of children that are kept as StoredObjects: it enqueues the object
  // that controls the child.
  void on_child(const Stored& before, const Stored& after) {
    const StoredObject& child = *(after ? after : before);
    context_.router.enqueue_owner(context_.id, child.object_key.ns, child.controller_uid,
                                  Debounce::kShort);
  }

 protected:
  // A subject is one object in one reconcile. Whatever the caches do meanwhile, its parts stay as
  // they are.
  struct Subject {
    Stored stored;
    std::shared_ptr<const Decoded> decoded;
    std::shared_ptr<Memory> memory;

    const ObjectKey& key() const { return stored->object_key; }
  };
  enum class Origin { kRead, kWritten };

  // `objects`: the primary collection. `decoded` may be shared with other controllers.
  PlannedController(const ControllerContext& context, const ObjectCache<StoredObject>& objects,
                    std::shared_ptr<DecodedObjects<Decoded>> decoded)
      : context_(context), objects_(objects), decoded_(std::move(decoded)) {}

  // ---- what every kind supplies

  // Observes, and plans by what it has observed.
  virtual Task<PlanOf> plan(const Subject& subject) = 0;

  // ---- what a kind may supply

  // False leaves the object alone, also if it cannot be decoded: another controller has it.
  virtual bool is_reconciled(const StoredObject& /*stored*/) const { return true; }
  // Returns why the object could not be decoded; nullptr if it could.
  virtual const FieldErrors* errors_of(const Decoded& /*decoded*/) const { return nullptr; }
  // Reports the object that could not be decoded.
  virtual Plan plan_unreadable(const Subject& /*subject*/, const FieldErrors& errors) const {
    Plan report;
    report.events.push_back(unreadable_event(errors));
    return report;
  }
  // Updates the metrics by the stored status: before each plan, and after it where no reconcile
  // follows from what it has written.
  virtual void measure(const Subject& /*subject*/) {}
  // Adds what a plan cannot contain, such as random numbers; none of it is remembered. An error
  // ends the reconcile.
  virtual Result<void> complete(const Subject& /*subject*/, PlanOf& /*plan*/) { return {}; }
  // The status is stored, or held back; the plan has nothing of Plan any more.
  virtual void on_status(const Subject& /*subject*/, const PlanOf& /*plan*/) {}
  // All actions and the status have succeeded.
  virtual void on_done(const Subject& /*subject*/, const PlanOf& /*plan*/) {}
  // The object of this key is not in the cache.
  virtual Task<Result<Requeue>> reconcile_gone(ObjectKey /*key*/) { co_return Requeue{}; }
  // False for a part of another object, whose end is counted.
  virtual bool is_end_counted(const StoredObject& /*stored*/) const { return true; }
  // Reads an object by name. An error ends the reconcile; one that the plan can do without belongs
  // into ReadObject::error.
  virtual Task<Result<ReadObject>> read(const Subject& subject, NamedObject named) {
    auto found = co_await context_.client.get(named.resource, named.key);
    if (found) co_return kept_of(subject, named, std::move(*found), Origin::kRead);
    if (found.error().code == ErrorCode::kNotFound) co_return ReadObject{};
    co_return tl::unexpected(found.error().at(
        fmt::format("{} {}: read {} {}", context_.plan_runner.resource().kind,
                    subject.key().to_string(), named.resource.kind, named.key.to_string())));
  }
  // Fills in the part of a named object that is kept: it may be large, and there may be many.
  // `kept` has the uid of its controller owner already.
  virtual void keep(const Subject& /*subject*/, const NamedObject& /*named*/, Json object,
                    Origin /*origin*/, ReadObject& kept) {
    kept.object = std::make_shared<const Json>(std::move(object));
  }

  // ---- for kinds

  const ControllerContext& context() const { return context_; }
  const ObjectCache<StoredObject>& objects() const { return objects_; }
  // Returns the memory of an object that exists.
  const std::shared_ptr<Memory>& memory_of(const std::string& uid) {
    auto& slot = memories_[uid];
    if (!slot) slot = std::make_shared<Memory>();
    return slot;
  }
  bool is_current(const Subject& subject) const {
    const Stored now = objects_.find(subject.key());
    return now && now->uid == subject.stored->uid;
  }
  // Measures the same object as it is in the cache now, if it still exists.
  void measure_again(const Subject& subject) {
    const Stored now = objects_.find(subject.key());
    if (now && now->uid == subject.stored->uid) measure({now, decoded_->of(now), subject.memory});
  }
  const Refusal* refusal_of(const Subject& subject) const {
    return context_.plan_runner.refusal_of(subject.stored->uid);
  }

 private:
  // A plan that still needs reads after this many rounds has a bug. The reconcile is tried again
  // with backoff.
  static constexpr int kMaxRounds = 6;

  ObjectRef ref_of(const Subject& subject) const {
    return {subject.key(), subject.stored->uid, subject.stored->resource_version,
            is_end_counted(*subject.stored)};
  }

  Task<Result<PlanOf>> complete_plan(const Subject& subject) {
    for (int round = 0; round < kMaxRounds; ++round) {
      PlanOf made = co_await plan(subject);
      const auto has_read = co_await read_needs(subject, made);
      if (!has_read) co_return tl::unexpected(has_read.error());
      if (!*has_read) co_return made;
    }
    co_return fail(ErrorCode::kInternal, "{} {}: the plan asks for more after {} reads",
                   context_.plan_runner.resource().kind, subject.key().to_string(), kMaxRounds);
  }

  // Returns whether anything was read, so that it makes sense to plan again.
  Task<Result<bool>> read_needs(const Subject& subject, const Plan& made) {
    for (const NamedObject& named : made.needs_objects) {
      auto found = co_await read(subject, named);
      if (!found) co_return tl::unexpected(found.error());
      found->stamp = made.read_stamp;
      found->is_new = true;
      subject.memory->objects.set(named, std::move(*found));
    }
    if (!made.needs_objects.empty()) co_return true;
    std::shared_ptr<LastWarning> warning(subject.memory, &subject.memory->warning);
    co_return co_await read_last_warning(context_.client, subject.key().ns, made.needs_events,
                                         std::move(warning));
  }

  Task<Result<Requeue>> run(Subject subject, PlanOf made) {
    std::vector<Action> written = context_.plan_runner.unwatched(made.actions);
    if (auto completed = complete(subject, made); !completed)
      co_return tl::unexpected(completed.error());
    const bool is_last = made.is_status_minor() && made.status_patch.has_value();
    // Two pointers are kept in a std::function without an allocation.
    const std::pair<const Subject&, const PlanOf&> run_for(subject, made);
    auto done = co_await context_.plan_runner.run(
        ref_of(subject), std::move(static_cast<Plan&>(made)),
        [this, &run_for] { on_status(run_for.first, run_for.second); });
    NamedObjects& known = subject.memory->objects;
    known.end_first_plan();
    if (done) {
      remember(subject, made, std::move(written));
      on_done(subject, made);
    } else if (done.error().code != ErrorCode::kCancelled) {
      known.invalidate_all();  // it is not known which objects a failed stage has written
    }
    if (made.memory == Plan::Memory::kReadAgain) known.invalidate_all();
    if (made.memory == Plan::Memory::kForget) known.forget_all();
    if (is_last) measure_again(subject);
    co_return done;
  }

  ReadObject kept_of(const Subject& subject, const NamedObject& named, Json object, Origin origin) {
    const auto meta = ObjectMeta::of(object);
    const OwnerReference* const owner = meta.controller();
    ReadObject kept;
    if (owner) kept.controller_uid = owner->uid;
    keep(subject, named, std::move(object), origin, kept);
    return kept;
  }

  void remember(const Subject& subject, const Plan& made, std::vector<Action> written) {
    for (Action& action : written) {
      const NamedObject named{std::move(action.resource), std::move(action.key)};
      if (action.verb == Action::Verb::kMergePatch) {
        subject.memory->objects.forget(named.resource, named.key.name);
        continue;
      }
      ReadObject kept;
      if (action.verb != Action::Verb::kDelete)
        kept = kept_of(subject, named, std::move(action.body), Origin::kWritten);
      kept.stamp = made.read_stamp;
      subject.memory->objects.set(named, std::move(kept));
    }
  }

  const ControllerContext context_;
  const ObjectCache<StoredObject>& objects_;
  const std::shared_ptr<DecodedObjects<Decoded>> decoded_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_;  // by uid
};

}  // namespace kube
