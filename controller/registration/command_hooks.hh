// A kind adds this to the subcommands `render`, `why` and `logs`, and to those that list, change
// and copy jobs. All functions are pure.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/configuration.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

// A hook of `render` knows this besides its object.
struct RenderInputs {
  Configuration configuration;  // the installation's, as far as it is known
  bool is_explained = false;    // say where each value came from
  bool has_jobs = false;        // expand JobSets into Jobs and Services
  kube::Time now;
  // Returns an object of the files, or a built-in one, whose hook has no `render`. nullptr says
  // that there is none.
  std::function<std::shared_ptr<const kube::Json>(const kube::Resource& resource,
                                                  const kube::ObjectKey& key)>
      find;
  // Returns whether this warning about such an object has been printed already.
  std::function<bool(const kube::Resource& resource, const kube::ObjectKey& key,
                     const std::string& warning)>
      is_warned;
};

struct RenderedObject {
  kube::Json object;
  std::vector<Explanation> explanations;
};

// Returns errors of an object that is created for another one, in the form for that one's user.
inline kube::FieldErrors of_child(const kube::Json& child, kube::FieldErrors errors) {
  const std::string title =
      fmt::format("{} {}: ", child.get_string("kind"), child.get("metadata").get_string("name"));
  for (kube::FieldError& error : errors) error.path.insert(0, title);
  return errors;
}

struct Rendered {
  std::vector<RenderedObject> objects;
  std::vector<std::string> warnings;
  // Errors of objects that are left out, since the API server refuses them.
  kube::FieldErrors errors;
};

// `render` does offline what the API server and the controller do with a new object: `mutate`, the
// schema's defaults and checks (from the CRD of the same registration), `validate`, `render`.
struct RenderHook {
  using Admit =
      std::function<AdmissionAnswer(const AdmissionRequest& request, const RenderInputs& inputs)>;

  kube::Resource resource;
  Admit mutate;    // may be null
  Admit validate;  // may be null
  // It is null for a kind that is not printed itself: other hooks find its objects.
  std::function<tl::expected<Rendered, kube::FieldErrors>(const kube::Json& object,
                                                          const RenderInputs& inputs)>
      render;
  std::vector<kube::Json> (*builtin)() = nullptr;  // objects that no file needs to contain
};

// `why` and `logs` report this about one object.
struct ObjectState {
  std::string phase;  // "": not started
  std::string reason;
  std::string message;
  std::string nodes;  // those that run, of all: "1/2"; or all: "2"; "" if they are not known
  std::vector<std::string> evidence;
  std::string next_step;   // "" if there is nothing to do
  std::string failed_pod;  // the pod whose failure the object's status keeps; "" if it keeps none
  // The last output of a pod that may be deleted, with a title; "" if there is none.
  std::string last_output;
  bool is_finished = false;
  bool is_failed = false;
  bool has_process_restarts = false;  // torchrun has started processes again in their pods
  // It makes steps, and its pods may show errors of processes that were replaced in them.
  bool has_old_output = false;
};

// `program` is the command's name in advice.
using ReadState = std::function<tl::expected<ObjectState, kube::FieldErrors>(
    const kube::Json& object, std::string_view program)>;

// The hook is `trainer why` for objects of the registration's primary collection.
struct WhyHook {
  std::string_view pod_label;  // its value is the name of the object that the pod belongs to
  ReadState read_state;
  // The ConfigMap with saved stacks has the object's name and this; "" for a kind without any.
  std::string_view stacks_suffix = {};
};

// This is a pod's place in its job: lines begin with it, and pods are ordered by it.
struct PodPlace {
  std::string role;            // the replicated job
  std::int32_t job_index = 0;  // among its Jobs
  std::int32_t index = 0;      // the completion index
  bool has_one_job = true;
  std::int32_t attempt = 0;  // the attempt of the whole job
  bool is_node = true;       // `--node` can choose it
};

// The hook is `trainer logs` for objects of the registration's primary collection.
struct LogsHook {
  std::string_view pod_label;
  ReadState read_state;
  // nullopt says that the pod has no place, so its log is left out.
  std::optional<PodPlace> (*read_place)(const kube::ObjectMeta& pod) = nullptr;
};

// The hook is `trainer get`, `suspend`, `resume`, `cancel`, `wait` and `rerun` for objects of the
// registration's primary collection. Such a kind has a WhyHook, too.
struct JobsHook {
  std::string_view
      policy;  // the member of spec that has `suspend` and `managedBy`; "": spec itself
  std::string_view manager;              // the value of `managedBy` that means this controller
  std::string_view running = "Running";  // the phase of a job whose pods run
  // Returns the devices of all pods that run at the same time. nullopt says that the object alone
  // does not show them.
  std::function<std::optional<std::int64_t>(const kube::Json& object)> count_devices;
  // Removes from a copy of the spec what a queue has written into it. It may be null.
  void (*clean_copy)(kube::Json& spec) = nullptr;
};

}  // namespace trainer
