// These families of metrics are made at each scrape. They are a part of metrics.cc, which alone
// includes this.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "controller/registration/job_metrics.hh"

namespace trainer {

using MetricFamilies = std::vector<prometheus::MetricFamily>;

// These series come and go with the jobs: the library's families keep theirs.
void add_jobs(MetricFamilies& families, const JobCensus& census);
// client-go's queues measure the time of a reconcile under a name of their own:
// workqueue_work_duration_seconds.
void add_work_durations(MetricFamilies& families);

}  // namespace trainer
