// Families of metrics that are made at each scrape. Part of metrics.cc, which alone includes this.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "controller/registration/job_metrics.hh"

namespace trainer {

using MetricFamilies = std::vector<prometheus::MetricFamily>;

// Series that come and go with the jobs: the library's families keep theirs.
void add_jobs(MetricFamilies& families, const JobCensus& census);
// workqueue_work_duration_seconds: client-go's queues measure the time of a reconcile under a name
// of their own.
void add_work_durations(MetricFamilies& families);

}  // namespace trainer
