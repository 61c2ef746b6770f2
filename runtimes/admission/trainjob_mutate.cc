// This is the mutating webhook of TrainJobs (Kubeflow Trainer, pkg/webhooks/trainjob_webhook.go).
#include <string>
#include <utility>

#include "kube/model/name_index.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/admission/extensions.hh"
#include "runtimes/admission/patch_changes.hh"
#include "runtimes/trainjob/legacy.hh"

namespace trainer {
namespace {

using kube::Json;

bool is_absent(const Json* value) {
  return !value || value->is_null();
}

const Json* find_patch(const Json& trainjob, std::string_view manager) {
  for (const Json& patch : trainjob.get("spec").get_array("runtimePatches"))
    if (patch.get_string("manager") == manager) return &patch;
  return nullptr;
}

// An unchanged patch keeps its time. A scheduler sends its patch again, unchanged, when it evicts a
// running job, and must not seem to have changed it.
void set_time(Json& patch, const Json* before, const std::string& now) {
  if (!before) {
    if (is_absent(patch.find("time"))) patch.set("time", now);
    return;
  }
  if (is_patch_changed(*before, patch)) {
    patch.set("time", now);
    return;
  }
  const Json* time = before->find("time");
  if (is_absent(time)) {
    patch.erase("time");
  } else {
    patch.set("time", *time);
  }
}

void set_times_of_patches(Json& trainjob, const Json& before, const std::string& now) {
  Json* spec = trainjob.find("spec");
  Json* patches = spec ? spec->find("runtimePatches") : nullptr;
  if (!patches || !patches->is_array()) return;
  const Json::Array& old = before.get("spec").get_array("runtimePatches");
  const kube::NameIndex by_manager(old,
                                   [](const Json& patch) { return patch.get_string("manager"); });
  for (Json& patch : patches->as_array()) {
    const auto at = by_manager.find(patch.get_string("manager"));
    if (patch.is_object()) set_time(patch, at ? &old[*at] : nullptr, now);
  }
}

// Returns whether Kueue sends this update. It starts a job by writing into its own patch, and stops
// it by spec.suspend. It also stops a job that it never started and whose suspend a user has
// cleared. Users do neither: the patch is not theirs, and Kueue undoes their changes of suspend.
bool is_from_kueue(const AdmissionRequest& request) {
  const Json* before = find_patch(request.old_object, kKueueManager);
  const Json* after = find_patch(request.object, kKueueManager);
  if (!request.may_lack_fields || !before || !after) return false;
  if (is_patch_changed(*before, *after)) return true;
  return request.object.get("spec").get_bool("suspend") !=
         request.old_object.get("spec").get_bool("suspend");
}

// Kueue counts pods by running a copy of upstream's pipeline on the object that it then sends. That
// pipeline completes the command of a torchtune job and wraps that of a Flux job in place. The
// field is immutable, so without this such a job could be neither started nor evicted.
void restore_command(Json& trainjob, const AdmissionRequest& request) {
  if (!is_from_kueue(request)) return;
  Json* trainer = trainjob["spec"].find("trainer");
  const Json* before = request.old_object.find_path({"spec", "trainer"});
  if (!trainer || !trainer->is_object() || !before || !before->is_object()) return;
  for (const std::string_view name : {"command", "args"}) {
    if (const Json* value = before->find(name)) {
      trainer->set(name, *value);
    } else {
      trainer->erase(name);
    }
  }
}

}  // namespace

AdmissionAnswer mutate_trainjob(const AdmissionRequest& request, kube::Time now) {
  if (request.operation != "CREATE" && request.operation != "UPDATE") return {};
  Json object = request.object;
  if (request.operation == "UPDATE") {
    put_back_extensions(object, request, {"spec"},
                        {"ttlSecondsAfterFinished", "failurePolicy", "podTemplateOverrides",
                         "podSpecOverrides", "labels", "annotations"});
    restore_command(object, request);
  }
  Conversion conversion;
  // A job that an earlier version has stored is not changed: writing its fields again would change
  // patches and fields that may not change any more, whatever the client does.
  if (are_legacy_fields_changed(request.old_object, object))
    conversion = convert_legacy_trainjob(object);
  if (!conversion.errors.empty()) return forbid(conversion.errors);
  set_times_of_patches(object, request.old_object, now.to_string());
  return allow_with(request.object, object, std::move(conversion.warnings));
}

}  // namespace trainer
