// This is `trainer run`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

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
#include "controller/cli/run_parts.hh"
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

constexpr const char* kRunManager = "trainer-run";

// This is known before the cluster is asked.
struct RunDraft {
  std::string name;
  std::vector<std::string> code;  // parts of the compressed tar
};

// These objects are created.
struct RunObjects {
  Json job;
  std::vector<Json> config_maps;
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
  auto parts = pack_code(std::move(folder->entries), options.job.code);
  if (!parts) return tl::unexpected(parts.error());
  std::size_t packed = 0;
  for (const std::string& part : *parts) packed += part.size();
  say_line(console,
           fmt::format("code: {} file{} of {}, {} compressed, in {} ConfigMap{}", folder->files,
                       folder->files == 1 ? "" : "s", size_text(folder->bytes), size_text(packed),
                       parts->size(), parts->size() == 1 ? "" : "s"));
  for (const std::string& left_out : folder->left_out)
    say_line(console, "code: left out: " + left_out);
  draft.code = std::move(*parts);
  return draft;
}

RunObjects make_objects(const RunOptions& options, const RunDraft& draft,
                        const FoundRuntime& runtime, const std::string& ns) {
  JobParts parts;
  parts.key = {ns, draft.name};
  parts.runtime = runtime.choice;
  parts.is_torch = runtime.is_torch;
  parts.code_names = code_names(draft.name, draft.code.size());
  return {make_job(options.job, parts), code_config_maps(parts.key, draft.code)};
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
  const ObjectKey& job() const { return job_; }

  // Returns the exit status.
  Task<Result<int>> run(RunObjects objects) {
    signals_.begin();
    if (auto done = co_await submit(std::move(objects)); !done)
      co_return tl::unexpected(done.error());
    if (options_.mode.is_detached) {
      say(fmt::format("started: `{} logs -f {} -n {}` shows its output", console_.program,
                      job_.name, job_.ns));
      co_return kExitDone;
    }
    tasks_.spawn("signals", signals_.run(steps()));
    follow_.resource = kTrainJobs;
    follow_.jobs = {job_};
    follow_.is_left = [this] { return is_left_; };
    follow_.report = [this](std::string_view what) { say(what); };
    const auto followed = co_await follow_jobs(io_, client_, console_, follow_);
    tasks_.cancel();
    co_await tasks_.join();
    if (!followed) co_return tl::unexpected(followed.error());
    if (is_left_ || followed->is_complete) co_return is_left_ ? kExitRefused : kExitDone;
    is_failed_ = !followed->failed.empty();
    if (!is_failed_) co_return static_cast<int>(kExitRefused);
    const auto last = co_await client_.get(kTrainJobs, job_);
    co_return last ? exit_status_of(*last) : static_cast<int>(kExitRefused);
  }

 private:
  void say(std::string_view what) { say_line(console_, what); }

  // The job is created first and owns the ConfigMaps, so that they are deleted with it, however
  // this ends. Its pods wait for them, which takes no longer than the first pod needs to start. A
  // job that is created suspended would do the same, but a queue may admit it at any time, and to
  // resume it is the queue's business.
  Task<Result<void>> submit(RunObjects objects) {
    job_ = kube::ObjectMeta::of(objects.job).key();
    const auto created = co_await client_.create(kTrainJobs, std::move(objects.job), kRunManager);
    if (!created) co_return tl::unexpected(explain(created.error()));
    const auto object = kube::parse_json(*created);
    const kube::ObjectMeta meta = object ? kube::ObjectMeta::of(*object) : kube::ObjectMeta();
    const std::string uid = meta.uid;
    // Kueue sets the label, too, where a namespace has a default queue.
    is_queued_ = meta.labels.contains(kQueueLabel);
    for (Json& config_map : objects.config_maps) {
      const std::string title = title_of(config_map);
      auto done = co_await add_code(std::move(config_map), uid);
      if (done) continue;
      kube::DeleteOptions options;
      options.propagation = "Background";
      options.uid = uid;
      const auto removed = co_await client_.remove(kTrainJobs, job_, options);
      if (!removed)
        say(fmt::format("the job stays: `kubectl delete trainjob {} -n {}` deletes it", job_.name,
                        job_.ns));
      kube::Error said = done.error().at(title);
      if (said.code == ErrorCode::kAlreadyExists)
        said.message += ": it is of an earlier job: delete it, or choose another --name";
      co_return tl::unexpected(said);
    }
    co_return Result<void>();
  }

  Task<Result<void>> add_code(Json config_map, std::string uid) {
    kube::OwnerReference owner;
    owner.api_version = kTrainJobs.api_version();
    owner.kind = kTrainJobs.kind;
    owner.name = job_.name;
    owner.uid = std::move(uid);
    config_map["metadata"].set("ownerReferences", Json::array({owner.to_json()}));
    const auto made =
        co_await client_.create(kube::kConfigMaps, std::move(config_map), kRunManager);
    if (!made) co_return tl::unexpected(made.error());
    co_return Result<void>();
  }

  kube::Error explain(const kube::Error& error) const {
    kube::Error said = error.at("TrainJob " + job_.to_string());
    if (error.code == ErrorCode::kAlreadyExists)
      said.message = fmt::format(
          "TrainJob {0}: there is one of this name: choose another --name, or delete it with "
          "`kubectl delete trainjob {1} -n {2}`",
          job_.to_string(), job_.name, job_.ns);
    if (error.code == ErrorCode::kTimeout || error.code == ErrorCode::kNetwork)
      said.message += fmt::format(
          ": it may exist all the same, without its code: `kubectl delete trainjob {} -n {}` "
          "deletes it",
          job_.name, job_.ns);
    if (error.code == ErrorCode::kForbidden)
      said.message += fmt::format(
          ": choose a namespace of yours with -n, or ask its admin for the role edit in {}",
          job_.ns);
    return said;
  }

  // Kueue starts a job again that a user has suspended.
  std::vector<SignalSteps::Step> steps() {
    const std::string leaves = "a second interrupt leaves the job to itself";
    SignalSteps::Step first{"stopping: " + leaves, [this] { return stop(); }};
    if (is_queued_)
      first = {fmt::format("its queue would start it again: `kubectl delete trainjob {} -n {}` "
                           "ends it; {}",
                           job_.name, job_.ns, leaves),
               [] { return wait_no_more(); }};
    return {std::move(first),
            {fmt::format("the job goes on: `{} logs -f {} -n {}` shows its output",
                         console_.program, job_.name, job_.ns),
             [this] { return leave(); }}};
  }

  Task<void> stop() {
    const auto done = co_await suspend_job(client_, job_);
    if (!done) say(fmt::format("TrainJob {}: {}", job_.to_string(), done.error().message));
  }
  static Task<void> wait_no_more() { co_return; }
  Task<void> leave() {
    is_left_ = true;
    co_return;
  }

  const RunOptions& options_;
  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Console& console_;
  FollowOptions follow_;
  ObjectKey job_;
  bool is_left_ = false;
  bool is_queued_ = false;
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
  RunObjects objects = make_objects(options, draft, runtime, options.cluster.ns);
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
  RunObjects objects = make_objects(options, draft, *runtime, ns);
  say_line(console, fmt::format("in namespace {}, with {} {}", ns, runtime->choice.resource.kind,
                                runtime->choice.name));
  say_unknown(*runtime, console);
  if (auto shown = show_plan(**cluster, registry, objects.job, console); !shown)
    return refuse_run(shown.error(), console);
  if (!is_wanted(options, console)) return kExitRefused;
  ClusterRun run(options, registry, **cluster, console);
  const auto code = (*cluster)->run(run.run(std::move(objects)));
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
  if (const auto checked = check_job_flags(options.job); !checked) {
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
