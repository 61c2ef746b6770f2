// A job is suspended, resumed, cancelled or copied by these rules. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/kind_registration.hh"

namespace trainer {

// The subcommands decide by these facts.
struct ChangeFacts {
  std::string title;  // "TrainJob team-a/llama"
  kube::ObjectMeta meta;
  ObjectState state;
  bool is_suspended = false;
  std::string queue;       // a queue of Kueue; "" for none
  std::string managed_by;  // the other controller that has the job; "" if this one has it
  std::string owner;       // "TrainJob llama": the job of which this is a part; "" if it is none
};
ChangeFacts read_change_facts(const Registry& registry, const KindRegistration& kind,
                              const kube::Json& object);

// Returns the reason why a job cannot be changed; nullopt if it can. `verb` is the subcommand.
std::optional<std::string> change_refusal(const ChangeFacts& job, std::string_view verb,
                                          std::string_view program);
// Returns the reason why a job cannot be copied; nullopt if it can.
std::optional<std::string> copy_refusal(const ChangeFacts& job, std::string_view program);

// Returns the patch, which has effect only on the object as it was read.
kube::Json suspend_patch(const KindRegistration& kind, const kube::ObjectMeta& meta,
                         bool is_suspended);
// Returns sentences about what else decides whether the job runs.
std::vector<std::string> suspend_notes(const ChangeFacts& job, bool is_suspended);

// Returns the name of a copy: "llama-r2" of "llama", "llama-r4" of "llama-r3". `tries` counts the
// names that are taken. A name that would be too long loses the end of its first part.
std::string name_of_copy(std::string_view name, int tries);
// Returns a copy that can be created. It has no status and none of what belongs to the old run:
// what the API server wrote into metadata, owners, finalizers, `suspend`, and the labels and
// annotations by which tools find their own objects.
kube::Json copy_of_job(const KindRegistration& kind, const kube::Json& object,
                       const std::string& name);

}  // namespace trainer
