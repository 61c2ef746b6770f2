// TrainJobs with the runtimes of the program, and with one for each policy.
#pragma once

#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "tests/unit/fate/subject.hh"

namespace trainer::fate {

struct Sample {
  std::string name;
  kube::Json runtime;  // a ClusterTrainingRuntime
  kube::Json job;      // TrainJob "j" in namespace "ns" that refers to it
};

// The built-in runtimes under their names, and one runtime for each ML policy, gang and plugin.
const std::vector<Sample>& samples();

// The same with a second container and an init container in each job, so that fields of these can
// be tried, too.
Sample with_more_containers(Sample sample);

// Admission of both, and all that is created: JobSet, Jobs, Service, claims, dependent objects.
Outcome render_trainjob(const kube::Json& job, const kube::Json& runtime);

// The job is the document, or its runtime.
Subject trainjob_subject(const Sample& sample);
Subject runtime_subject(const Sample& sample);
// The job has a patch for one of its runtime's jobs and all containers of that.
Subject patch_subject(const Sample& sample, Values& values);

kube::Json yaml(std::string_view text);

}  // namespace trainer::fate
