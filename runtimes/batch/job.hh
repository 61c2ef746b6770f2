// The controller of a batch/v1 Job reads it in this form. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer::batch {

// Numbers that are absent have the defaults of the API (pkg/apis/batch/v1/defaults.go).
struct BatchJob {
  std::shared_ptr<const kube::Json> object;  // the stored form; never null
  kube::ObjectMeta metadata;
  bool is_indexed = false;
  bool is_suspended = false;
  // A pod that is being deleted is replaced only once it has ended (podReplacementPolicy Failed).
  bool replaces_only_failed = false;
  std::int32_t parallelism = 1;
  std::optional<std::int32_t> completions;  // nullopt: any success ends the Job
  std::int32_t backoff_limit = 6;
  std::optional<std::int32_t> backoff_limit_per_index;
  std::optional<std::int32_t> max_failed_indexes;
  std::optional<std::int64_t> active_deadline;  // seconds
  std::optional<std::int64_t> ttl;              // seconds

  const kube::Json& spec() const { return object->get("spec"); }
  const kube::Json& status() const { return object->get("status"); }
  const kube::Json& pod_template() const { return spec().get("template"); }
  bool is_deleting() const { return metadata.deletion_timestamp.has_value(); }
  // Returns whether another controller manages it (spec.managedBy).
  bool is_foreign() const;
  // Returns the condition of this type, if it is True; nullptr otherwise.
  const kube::Json* find_true(std::string_view type) const;
  bool is_finished() const { return find_true("Complete") || find_true("Failed"); }
  // Returns whether a pod with this completion index belongs to the Job in its present form: in an
  // Indexed Job the index must exist and be below `completions`; in any other Job every pod belongs
  // to it.
  bool has_index(const std::optional<std::int32_t>& index) const {
    return !is_indexed || (index && *index < completions.value_or(0));
  }
};

// Reading is lenient, since the API server has checked what it stored.
BatchJob read_job(std::shared_ptr<const kube::Json> object);

}  // namespace trainer::batch
