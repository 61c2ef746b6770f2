// This is `trainer run`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/code_files.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/follow_jobs.hh"
#include "controller/cli/local_jobs.hh"
#include "controller/cli/log_print.hh"
#include "controller/cli/plan_report.hh"
#include "controller/cli/read_plan.hh"
#include "controller/cli/run_flags.hh"
#include "controller/cli/run_parts.hh"
#include "controller/cli/run_submit.hh"
#include "controller/cli/run_watch.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

// This is known before the cluster is asked.
struct RunDraft {
  std::string name;
  SentCode code;
};

void say_line(Console& console, std::string_view what) {
  console.err << "-- " << plain_text(what) << std::endl;
}

Result<RunDraft> draft_run(const RunOptions& options, Console& console) {
  RunDraft draft{name_of_run(options.job), {}};
  say_line(console, fmt::format("TrainJob {}: {}", draft.name, describe_job(options.job)));
  if (options.job.code.empty()) return draft;
  auto folder = read_code(options.job.code);
  if (!folder) return tl::unexpected(folder.error());
  auto parts = pack_code(folder->entries, options.job.code);
  if (!parts) return tl::unexpected(parts.error());
  std::size_t packed = 0;
  for (const std::string& part : *parts) packed += part.size();
  say_line(console,
           fmt::format("code: {} file{} of {}, {} compressed, in {} ConfigMap{}", folder->files,
                       folder->files == 1 ? "" : "s", size_text(folder->bytes), size_text(packed),
                       parts->size(), parts->size() == 1 ? "" : "s"));
  for (const std::string& left_out : folder->left_out)
    say_line(console, "code: left out: " + left_out);
  draft.code.parts = std::move(*parts);
  if (options.mode.is_watched) draft.code.entries = std::move(folder->entries);
  return draft;
}

RunObjects make_objects(const RunOptions& options, const std::string& name, const SentCode& code,
                        const FoundRuntime& runtime, const std::string& ns) {
  const bool is_watched = options.mode.is_watched;
  JobParts parts;
  parts.key = {ns, name};
  parts.runtime = runtime.choice;
  parts.is_torch = runtime.is_torch;
  parts.is_watched = is_watched;
  parts.code_names = code_names(name, code.parts.size());
  return {make_job(options.job, parts), code_config_maps(parts.key, code.parts, is_watched)};
}

// A question needs someone who reads it, and who answers.
bool has_user() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

// Says whether the job fits into the cluster now, as `trainer plan` does. Errors: the job is
// refused.
Result<void> show_plan(Cluster& cluster, const Registry& registry, const Json& job,
                       Console& console) {
  std::ostringstream said;  // the cluster repeats the warnings when the job is created
  Console quiet(console.in, console.out, said, console.program);
  kube::ApiClient& client = cluster.client();
  const ObjectKey key = kube::ObjectMeta::of(job).key();
  auto rendered = cluster.run(render_for_plan(client, registry, {job}, key.ns, quiet));
  if (!rendered && rendered.error().code == ErrorCode::kInvalid) {
    quiet.err << std::flush;
    return kube::fail(ErrorCode::kInvalid, "{}", said.str());
  }
  const auto answer = rendered ? cluster.run(read_plan(client, registry, {*rendered, {}}))
                               : tl::unexpected(rendered.error());
  if (answer)
    console.err << plan_text(*answer, title_of(job), client.clock().now()) << std::flush;
  else
    say_line(console, "whether it fits is not known: " + answer.error().message);
  return {};
}

// Asks, if there is someone to ask.
bool is_wanted(const RunOptions& options, Console& console) {
  if (options.mode.is_confirmed || !has_user()) return true;
  console.err << "-- start it? [y/N] " << std::flush;
  std::string answer;
  std::getline(console.in, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  say_line(console, "not started");
  return false;
}

// Makes the objects of a job whose code was edited.
using MakeObjects = std::function<RunObjects(const SentCode& code)>;

// Concurrency: one thread, that of the cluster's io_context.
class ClusterRun {
 public:
  ClusterRun(const RunOptions& options, const Registry& registry, Cluster& cluster,
             Console& console)
      : options_(options),
        io_(cluster.io()),
        client_(cluster.client()),
        console_(console),
        signals_(io_, [this](std::string_view what) { say(what); }),
        tasks_(io_.get_executor(), [this](std::string_view task, std::string_view what) {
          say(fmt::format("{}: {}", task, what));
        }) {
    for (const KindRegistration& kind : registry)
      if (kind.controller.resource() == kTrainJobs && kind.logs) follow_.hook = *kind.logs;
  }

  bool is_failed() const { return is_failed_; }
  const ObjectKey& job() const { return submitted_.job; }

  // Returns the exit status.
  Task<Result<int>> run(RunObjects objects, const SentCode& code, const MakeObjects& make) {
    signals_.begin();
    std::optional<RunWatch> watch;
    if (options_.mode.is_watched) {
      watch.emplace(io_, client_, options_.job.code, code, sayer());
      if (auto done = watch->begin(); !done) co_return tl::unexpected(done.error());
    }
    auto submitted = co_await submit_run(client_, std::move(objects), sayer());
    if (!submitted) co_return tl::unexpected(submitted.error());
    submitted_ = std::move(*submitted);
    if (options_.mode.is_detached) {
      say(fmt::format("started: `{} logs -f {} -n {}` shows its output", console_.program,
                      job().name, job().ns));
      co_return kExitDone;
    }
    tasks_.spawn("signals", signals_.run(steps()));
    follow_.resource = kTrainJobs;
    follow_.jobs = {job()};
    follow_.is_left = [this, &watch] { return is_left_ || (watch && watch->needs_new_job()); };
    follow_.report = sayer();
    const auto followed = watch ? co_await follow_edits(*watch, make)
                                : co_await follow_jobs(io_, client_, console_, follow_);
    tasks_.cancel();
    co_await tasks_.join();
    if (!followed) co_return tl::unexpected(followed.error());
    if (is_left_ || followed->is_complete) co_return is_left_ ? kExitRefused : kExitDone;
    is_failed_ = !followed->failed.empty();
    if (!is_failed_) co_return static_cast<int>(kExitRefused);
    const auto last = co_await client_.get(kTrainJobs, job());
    co_return last ? exit_status_of(*last) : static_cast<int>(kExitRefused);
  }

 private:
  void say(std::string_view what) { say_line(console_, what); }
  std::function<void(std::string_view)> sayer() {
    return [this](std::string_view what) { say(what); };
  }

  void say_waits(const Followed& followed) {
    const std::string why = followed.is_complete
                                ? ""
                                : fmt::format("; `{} why {} -n {}` says why it failed",
                                              console_.program, job().name, job().ns);
    say("waiting for an edit; Ctrl-C ends" + why);
  }

  // Follows one job after the other, as edits want new ones, until an interrupt.
  Task<Result<Followed>> follow_edits(RunWatch& watch, const MakeObjects& make) {
    const EditWait wait{[&watch] { return watch.needs_new_job(); }, [this] { return is_stopped_; },
                        [this](const Followed& followed) { say_waits(followed); }};
    for (;;) {
      tasks_.spawn("edits", watch.follow(job(), submitted_.uid, follow_.hook.pod_label));
      const auto followed = co_await follow_until_edit(io_, client_, console_, follow_, wait);
      if (!followed) co_return tl::unexpected(followed.error());
      // The end of this cancels a suspension that has only begun.
      if (is_stopped_ && !submitted_.is_queued && !is_left_) co_await stop();
      if (!watch.needs_new_job() || is_stopped_ || is_left_) co_return *followed;
      auto names = code_names(job().name, watch.config_maps());
      auto gone = co_await delete_run(client_, submitted_, std::move(names));
      if (!gone) co_return tl::unexpected(gone.error());
      if (is_stopped_ || is_left_) co_return *followed;
      auto submitted = co_await submit_run(client_, make(watch.code()), sayer());
      if (!submitted) co_return tl::unexpected(submitted.error());
      submitted_ = std::move(*submitted);
      if (is_stopped_) co_await stop();
    }
  }

  // Kueue starts a job again that a user has suspended.
  std::vector<SignalSteps::Step> steps() {
    const std::string leaves = "a second interrupt leaves the job to itself";
    SignalSteps::Step first{"stopping: " + leaves, [this] { return stop(); }};
    if (submitted_.is_queued)
      first = {fmt::format("its queue would start it again: `kubectl delete trainjob {} -n {}` "
                           "ends it; {}",
                           job().name, job().ns, leaves),
               [this] { return wait_no_more(); }};
    return {std::move(first),
            {fmt::format("the job goes on: `{} logs -f {} -n {}` shows its output",
                         console_.program, job().name, job().ns),
             [this] { return leave(); }}};
  }

  Task<void> stop() {
    is_stopped_ = true;
    const auto done = co_await suspend_job(client_, job());
    if (!done) say(fmt::format("TrainJob {}: {}", job().to_string(), done.error().message));
  }
  Task<void> wait_no_more() {
    is_stopped_ = true;
    co_return;
  }
  Task<void> leave() {
    is_left_ = true;
    co_return;
  }

  const RunOptions& options_;
  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Console& console_;
  FollowOptions follow_;
  SubmittedRun submitted_;
  bool is_left_ = false;
  bool is_stopped_ = false;  // an interrupt came
  bool is_failed_ = false;
  SignalSteps signals_;
  kube::TaskGroup tasks_;
};

int refuse_run(const kube::Error& error, Console& console) {
  console.err << console.program << ": run: " << plain_text(error.message) << '\n';
  const bool is_unreached = error.code == ErrorCode::kNetwork || error.code == ErrorCode::kTimeout;
  return is_unreached ? kExitNoCluster : kExitRefused;
}

void say_unknown(const FoundRuntime& runtime, Console& console) {
  if (runtime.is_known) return;
  say_line(console, fmt::format("{} {} is not built in and was not read: if it is for torch, the "
                                "job needs annotation trainer.kubeflow.org/torch-launcher, or "
                                "each node trains alone",
                                runtime.choice.resource.kind, runtime.choice.name));
}

int print_run(const RunOptions& options, const RunDraft& draft, const FoundRuntime& runtime,
              Console& console) {
  say_unknown(runtime, console);
  RunObjects objects = make_objects(options, draft.name, draft.code, runtime, options.cluster.ns);
  std::vector<Json> all = std::move(objects.config_maps);
  all.push_back(std::move(objects.job));
  const bool is_json = options.mode.format == OutputFormat::kJson;
  print_documents(all, is_json ? OutputFormat::kJson : OutputFormat::kYaml, console.out);
  return kExitDone;
}

int run_in_cluster(const RunOptions& options, const Registry& registry, const RunDraft& draft,
                   Console& console) {
  kube::ApiClient::Options client;
  client.is_strict = true;
  client.on_warning = [&console](std::string_view text) {
    say_line(console, fmt::format("warning: {}", text));
  };
  auto cluster = Cluster::connect(options.cluster, std::move(client));
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  const std::string ns = (*cluster)->ns();
  const auto runtime = (*cluster)->run(find_runtime((*cluster)->client(), options.job, ns));
  if (!runtime) return refuse_run(runtime.error(), console);
  if (options.mode.is_dry_run) return print_run(options, draft, *runtime, console);
  const MakeObjects make = [&options, &draft, &runtime, &ns](const SentCode& code) {
    return make_objects(options, draft.name, code, *runtime, ns);
  };
  say_line(console, fmt::format("in namespace {}, with {} {}", ns, runtime->choice.resource.kind,
                                runtime->choice.name));
  say_unknown(*runtime, console);
  RunObjects objects = make(draft.code);
  if (auto shown = show_plan(**cluster, registry, objects.job, console); !shown)
    return refuse_run(shown.error(), console);
  if (!is_wanted(options, console)) return kExitRefused;
  ClusterRun run(options, registry, **cluster, console);
  const auto code = (*cluster)->run(run.run(std::move(objects), draft.code, make));
  if (!code) return refuse_run(code.error(), console);
  if (run.is_failed()) {
    console.out << std::flush;
    WhyOptions why;
    why.cluster = options.cluster;
    why.cluster.ns = ns;
    why.target = {run.job().name};
    run_why(why, registry, console);
  }
  return *code;
}

}  // namespace

int run_run(const RunOptions& options, const Registry& registry, Console& console) {
  auto checked = check_job_flags(options.job);
  if (checked) checked = check_watch(options.job, options.mode);
  if (!checked) {
    console.err << console.program << ": run: " << checked.error().message << " (see --help)\n";
    return kExitUsage;
  }
  // Nothing before this asks the cluster, so that the first lines come at once.
  const auto draft = draft_run(options, console);
  if (!draft) return refuse_run(draft.error(), console);
  if (!options.mode.is_dry_run || options.job.runtime.empty())
    return run_in_cluster(options, registry, *draft, console);
  const auto runtime = find_builtin_runtime(options.job);
  if (!runtime) return refuse_run(runtime.error(), console);
  return print_run(options, *draft, *runtime, console);
}

}  // namespace trainer
