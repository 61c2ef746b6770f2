#include "controller/cli/local_command.hh"

#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include "controller/cli/documents.hh"
#include "controller/cli/log_print.hh"
#include "controller/cli/run_flags.hh"
#include "controller/cli/run_parts.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;

Result<Json> make_local_job(const JobFlags& flags, const FoundRuntime& runtime,
                            const std::string& ns) {
  JobParts parts;
  parts.key = {ns, flags.name};
  parts.runtime = runtime.choice;
  parts.is_torch = runtime.is_torch;
  if (!flags.code.empty()) {
    std::error_code error;
    const auto folder = std::filesystem::canonical(flags.code, error);
    if (error || !std::filesystem::is_directory(folder, error))
      return kube::fail(ErrorCode::kNotFound,
                        "--code {}: there is no such folder: name the one that has the code",
                        flags.code);
    parts.working_directory = folder.string();
  }
  return make_job(flags, parts);
}

}  // namespace

Result<void> check_local_run(const LocalRunOptions& options) {
  const JobFlags& job = options.job;
  if (!job.command.empty()) {
    if (!options.files.empty())
      return kube::fail(ErrorCode::kInvalid,
                        "{}: a file and a command are two things to run: leave one out",
                        options.files[0]);
    if (auto checked = check_job_flags(job); !checked) return checked;
    return check_watch(job, options.mode);
  }
  if (options.files.empty())
    return kube::fail(ErrorCode::kInvalid,
                      "there is nothing to run: name a file, or write a command behind --, such as "
                      "`-- python train.py`");
  const bool has_flags = !job.runtime.empty() || !job.name.empty() || !job.queue.empty() ||
                         !job.code.empty() || job.gpus || !job.env.empty();
  if (has_flags)
    return kube::fail(ErrorCode::kInvalid,
                      "--runtime, --name, --queue, --code, --gpus and --env are for a command "
                      "behind --: write them into the file");
  if (options.mode.is_watched)
    return kube::fail(
        ErrorCode::kInvalid,
        "--watch is for a command behind --, with the folder of --code: leave it out");
  if (options.mode.is_dry_run)
    return kube::fail(ErrorCode::kInvalid,
                      "--dry-run is for a command behind --: `trainer render {}` prints what would "
                      "be created for a file",
                      options.files[0]);
  return {};
}

kube::Task<Result<Json>> job_of_command(kube::ApiClient& client, JobFlags flags, std::string ns) {
  const auto runtime = co_await find_runtime(client, flags, ns);
  if (!runtime) co_return tl::unexpected(runtime.error());
  co_return make_local_job(flags, *runtime, ns);
}

int print_job_of_command(const LocalRunOptions& options, Console& console) {
  const auto runtime = find_builtin_runtime(options.job);
  auto job = runtime ? make_local_job(options.job, *runtime, options.ns)
                     : Result<Json>(tl::unexpected(runtime.error()));
  if (!job) {
    console.err << console.program << ": local run: " << plain_text(job.error().message) << '\n';
    return kExitRefused;
  }
  const bool is_json = options.mode.format == OutputFormat::kJson;
  print_documents({std::move(*job)}, is_json ? OutputFormat::kJson : OutputFormat::kYaml,
                  console.out);
  return kExitDone;
}

}  // namespace trainer
