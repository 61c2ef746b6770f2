// Each figure is a function that does the same thing a number of times. The cost of one time is the
// difference between two runs, so the preparation of a figure does not count.
#pragma once

namespace trainer::instructions {

// plan() alone.
void plan_trainjob_new(int times);
void plan_trainjob_running(int times);
void plan_jobset_new(int times);
void plan_jobset_running(int times);

// An event of a watch, from the stream into the cache. The workers have not been started.
void watch_pod(int times);
void watch_job(int times);
void watch_jobset(int times);
void watch_trainjob(int times);

// An event of a watch, and the reconcile that follows from it and sends nothing.
void reconcile_jobset(int times);
void reconcile_trainjob(int times);
// This reconciles if the TrainJob itself has not changed since it was decoded.
void reconcile_after_pod(int times);

}  // namespace trainer::instructions
