// This is `trainer rerun`.
#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "controller/cli/change_job.hh"
#include "controller/cli/documents.hh"
#include "kube/model/json_text.hh"
#include "runtimes/plugins/code/code.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr const char* kCopyManager = "trainer-rerun";
constexpr int kMaxNames = 100;

// Returns the first name that is free.
Task<Result<std::string>> free_name(const JobInCluster& job) {
  for (int i = 0; i < kMaxNames; ++i) {
    std::string name = name_of_copy(job.opened.key.name, i);
    const kube::ObjectKey key{job.opened.key.ns, name};
    const auto object = co_await job.client().get(job.resource(), key);
    if (!object && object.error().code == kube::ErrorCode::kNotFound) co_return name;
    if (!object) co_return tl::unexpected(object.error());
  }
  co_return kube::fail(kube::ErrorCode::kConflict,
                       "{} {}: there are {} copies already: choose a name by --name",
                       job.resource().kind, job.opened.key.to_string(), kMaxNames);
}

Task<int> rerun(const JobInCluster& job, const RerunOptions& options) {
  const auto object = co_await job.get();
  if (!object) co_return job.report(object.error());
  const ChangeFacts facts = job.facts(*object);
  if (const auto why = copy_refusal(facts, job.console.program)) co_return job.refuse(*why);
  for (int i = 0; i < kMaxNames; ++i) {
    Result<std::string> name = options.name;
    if (options.name.empty()) name = co_await free_name(job);
    if (!name) co_return job.report(name.error());
    Json copy = copy_of_job(job.kind(), *object, *name);
    if (options.is_dry_run) {
      print_documents({std::move(copy)}, options.format, job.console.out);
      co_return kExitDone;
    }
    const auto made = co_await job.client().create(job.resource(), std::move(copy), kCopyManager);
    if (made) {
      job.console.out << fmt::format("{} {}/{}: created as a copy of {}\n", job.resource().kind,
                                     facts.meta.ns, *name, facts.meta.name);
      if (facts.meta.annotations.contains(pipeline::kCodeKey))
        job.console.err << fmt::format(
            "-- the ConfigMaps with its code belong to {0}: do not delete {0} before the copy has "
            "ended\n",
            facts.meta.name);
      co_return kExitDone;
    }
    // Another command may have taken the name.
    if (made.error().code != kube::ErrorCode::kAlreadyExists || !options.name.empty())
      co_return job.report(made.error());
  }
  co_return job.refuse(facts.title + ": others take each name: choose one by --name");
}

}  // namespace

int run_rerun(const RerunOptions& options, const Registry& registry, Console& console) {
  const auto job = open_job(registry, "rerun", options.job, console);
  if (!job) return job.error();
  return job->opened.cluster->run(rerun(*job, options));
}

}  // namespace trainer
