// The view of a Pod of a V1 job is the part that is kept. It is a view of its own: these pods carry
// other labels, and the view of the pods of TrainJobs need not grow for them. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/views/pod.hh"

namespace trainer::v1 {

struct V1PodView : trainer::PodView {
  std::string job;           // label training.kubeflow.org/job-name
  std::string owner_uid;     // the uid of its controller
  std::string replica_type;  // the label, in lower case: "worker"
  std::string reason;        // the reason in its status: "Evicted"
  std::string message;       // the message beside that reason, cut
  std::optional<kube::Time> created;
  std::int32_t restarts = 0;                    // the sum over its containers and init containers
  std::optional<std::int64_t> active_deadline;  // spec.activeDeadlineSeconds
  // The latest run of one of its containers failed (of its init containers, while it is Pending);
  // it may be in a back-off, or run again.
  bool has_failed_last = false;
  bool is_backing_off = false;  // such a container does not run now
  struct Exit {
    std::string container;
    std::int32_t code = 0;
    friend bool operator==(const Exit&, const Exit&) = default;
  };
  std::vector<Exit> exits;  // the ends of containers whose present state is terminated
  // A V1 job reports this in events about its pods' troubles: a container's wait with a message,
  // its end with another code than 0, or a condition that is not True.
  struct Trouble {
    std::string reason;
    std::string message;  // begins with "Error pod NAME"
    friend bool operator==(const Trouble&, const Trouble&) = default;
  };
  std::vector<Trouble> troubles;
  friend bool operator==(const V1PodView&, const V1PodView&) = default;

  std::optional<std::int32_t> exit_code_of(std::string_view container) const;
  bool is_over() const { return phase == "Succeeded" || phase == "Failed"; }
};

// Reads one object, or its JSON text, like trainer::PodView. The result is nullptr if it has no
// name.
std::shared_ptr<V1PodView> view_pod(const kube::Json& pod);
std::shared_ptr<V1PodView> transform_pod(std::string_view json_text);

}  // namespace trainer::v1
