// This is `trainer local run`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/code_change.hh"
#include "controller/cli/code_watcher.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/follow_jobs.hh"
#include "controller/cli/local.hh"
#include "controller/cli/local_changes.hh"
#include "controller/cli/local_command.hh"
#include "controller/cli/local_daemon.hh"
#include "controller/cli/local_jobs.hh"
#include "controller/cli/local_objects.hh"
#include "controller/cli/log_print.hh"
#include "controller/cli/run_parts.hh"
#include "kube/client/task_group.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

// The daemon is started with these options, unless one is up.
const std::vector<std::string> kDaemonOptions{"--idle", "600"};

std::string title_of_job(const ObjectKey& key) {
  return "TrainJob " + key.to_string();
}

// Returns the program that execvp() would start.
std::string find_program(const std::string& name, std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string file = std::string(path.substr(0, end)) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return "";
}

// Concurrency: one thread, that of the cluster's io_context.
class LocalRun {
 public:
  LocalRun(const LocalRunOptions& options, LocalChanges changes, const Registry& registry,
           const LocalDaemon& daemon, std::string address, Cluster& cluster, Console& console)
      : options_(options),
        changes_(std::move(changes)),
        daemon_(daemon),
        address_(std::move(address)),
        io_(cluster.io()),
        client_(cluster.client()),
        console_(console),
        watcher_(io_, client_.clock(), [this](std::string_view what) { say(what); }),
        signals_(io_, [this](std::string_view what) { say(what); }),
        tasks_(cluster.io().get_executor(), [this](std::string_view task, std::string_view what) {
          say(fmt::format("{}: {}", task, what));
        }) {
    for (const KindRegistration& kind : registry)
      if (kind.controller.resource() == kTrainJobs && kind.logs) hook_ = *kind.logs;
  }

  // All jobs are followed unless they are detached.
  Task<Result<Followed>> run(LocalObjects objects) {
    if (options_.mode.is_watched) {
      watched_ = objects.jobs.at(0);
      if (auto done = begin_watch(); !done) co_return tl::unexpected(done.error());
    }
    if (auto done = co_await submit(std::move(objects)); !done)
      co_return tl::unexpected(done.error());
    if (options_.mode.is_detached) {
      for (const ObjectKey& job : jobs_)
        say(fmt::format("{0}: started; `{1} local logs -f {2} -n {3}` shows its output",
                        title_of_job(job), console_.program, job.name, job.ns));
      co_return Followed();
    }
    signals_.begin();
    tasks_.spawn("signals", signals_.run(steps()));
    tasks_.spawn("daemon", keep_daemon_up());
    FollowOptions follow;
    follow.resource = kTrainJobs;
    follow.hook = hook_;
    follow.jobs = jobs_;
    follow.is_left = [this] { return has_daemon_left_ || is_edited_; };
    follow.report = [this](std::string_view what) { report(what); };
    auto followed = options_.mode.is_watched
                        ? co_await follow_edits(std::move(follow))
                        : co_await follow_jobs(io_, client_, console_, std::move(follow));
    tasks_.cancel();
    co_await tasks_.join();
    co_return followed;
  }

 private:
  void say(std::string_view what) { console_.err << "-- " << plain_text(what) << std::endl; }

  // The second text is kube-scheduler's, about a pod for which the end of other pods makes no room.
  void report(std::string_view what) {
    say(what);
    const bool never_fits = what.find("Insufficient") != what.npos &&
                            what.find("Preemption is not helpful") != what.npos;
    if (never_fits && !changes_.is_fitted && !std::exchange(is_fit_named_, true))
      say("this machine has not what the job asks for: stop it, and run it with --fit");
  }

  // The folder itself is the working directory: nothing is sent.
  Result<void> begin_watch() {
    auto folder = read_code(options_.job.code);
    if (!folder) return tl::unexpected(folder.error());
    return watcher_.begin(options_.job.code, std::move(folder->entries));
  }

  Task<void> await_edit() {
    const auto edit = co_await watcher_.next();
    if (!edit) {
      say(edit.error().message + ": edits are no longer seen");
      co_return;
    }
    say(fmt::format("code: {}; starting again", change_text(edit->changed)));
    is_edited_ = true;
  }

  // Runs the job again after each edit, until an interrupt.
  Task<Result<Followed>> follow_edits(FollowOptions follow) {
    const EditWait wait{[this] { return is_edited_; },
                        [this] { return is_stopped_ || has_daemon_left_; },
                        [this](const Followed&) { say("waiting for an edit; Ctrl-C ends"); }};
    for (;;) {
      tasks_.spawn("edits", await_edit());
      auto followed = co_await follow_until_edit(io_, client_, console_, follow, wait);
      if (!followed) co_return followed;
      if (!is_edited_ || is_stopped_ || has_daemon_left_) co_return followed;
      if (auto killed = co_await kill_pods(client_, jobs_.at(0)); !killed)
        co_return tl::unexpected(killed.error());
      is_edited_ = false;
      if (auto started = co_await start(watched_); !started)
        co_return tl::unexpected(started.error());
      if (is_stopped_) co_await end_all(true);
    }
  }

  Task<Result<void>> submit(LocalObjects objects) {
    if (auto made = co_await create_missing_runtimes(client_); !made) co_return made;
    for (const Json& job : objects.jobs) {
      if (kube::ObjectMeta::of(job).name.empty()) continue;  // the server makes a name
      const auto free = co_await check_job_may_run(client_, kube::ObjectMeta::of(job).key());
      if (!free) co_return tl::unexpected(free.error().at(title_of(job)));
    }
    for (auto& [resource, object] : objects.others) {
      const ObjectKey key = kube::ObjectMeta::of(object).key();
      const auto applied =
          co_await client_.apply(resource, key, object, "trainer-local", /*force=*/true);
      if (!applied) co_return tl::unexpected(applied.error().at(title_of(object)));
    }
    for (Json& job : objects.jobs) {
      const std::string title = title_of(job);
      auto created = co_await start(std::move(job));
      if (!created) co_return tl::unexpected(created.error().at(title));
      jobs_.push_back(std::move(*created));
    }
    co_return Result<void>();
  }

  Task<Result<ObjectKey>> start(Json job) {
    Json runtime;
    Json machine;
    if (changes_.is_fitted || !changes_.mounts.empty()) {
      auto found = co_await get_runtime_of(client_, job);
      if (!found) co_return tl::unexpected(found.error());
      runtime = std::move(*found);
    }
    if (changes_.is_fitted) {
      auto node = co_await client_.get(kube::kNodes, ObjectKey("", "local"));
      if (!node) co_return tl::unexpected(node.error().at("the machine's size for --fit"));
      machine = node->get_path({"status", "allocatable"});
    }
    const auto lines = change_for_local(job, runtime, machine, changes_);
    if (!lines.empty()) say(fmt::format("{}: {}", title_of(job), fmt::join(lines, "; ")));
    const ObjectKey key = kube::ObjectMeta::of(job).key();
    if (!key.name.empty()) {
      if (auto gone = co_await delete_job(client_, key); !gone)
        co_return tl::unexpected(gone.error());
    }
    co_return co_await create_job(client_, std::move(job));
  }

  std::vector<SignalSteps::Step> steps() {
    return {
        {"stopping: a second interrupt kills what still runs", [this] { return end_all(true); }},
        {"killing what runs: a third interrupt leaves it to itself",
         [this] { return end_all(false); }}};
  }

  Task<void> end_all(bool is_asked) {
    is_stopped_ = true;
    for (const ObjectKey& job : jobs_) {
      const auto done = co_await end(job, is_asked);
      if (!done) say(fmt::format("{}: {}", title_of_job(job), done.error().message));
    }
  }

  Task<Result<void>> end(ObjectKey job, bool is_asked) {
    if (!is_asked) co_return co_await kill_pods(client_, std::move(job));
    co_return co_await suspend_job(client_, std::move(job));
  }

  // A daemon that was killed is started again with its options, and continues the jobs. A daemon
  // that was asked to end has suspended them before.
  Task<void> keep_daemon_up() {
    for (;;) {
      co_await kube::sleep(client_.clock(), std::chrono::seconds(1));
      if (daemon_.status()) continue;
      if (!daemon_.was_killed()) {
        say("the daemon was asked to end: it is not started again");
        has_daemon_left_ = true;
        co_return;
      }
      say("the daemon has ended: it is started again");
      const auto started = daemon_.restart();
      if (!started) say(started.error().message);
      if (!started || started->address == address_) continue;
      // Another program has taken the daemon's port meanwhile, and would get the requests of this
      // command.
      for (const std::string& change : started->changes) say(change);
      say(fmt::format("the jobs go on: `{} local logs -f JOB` shows their output",
                      console_.program));
      has_daemon_left_ = true;
      co_return;
    }
  }

  const LocalRunOptions& options_;
  LocalChanges changes_;
  const LocalDaemon& daemon_;
  const std::string address_;  // the daemon's address, to which all requests go
  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Console& console_;
  LogsHook hook_;
  std::vector<ObjectKey> jobs_;
  Json watched_;  // the job that begins again after an edit
  CodeWatcher watcher_;
  bool is_edited_ = false;
  bool is_stopped_ = false;  // an interrupt came
  bool has_daemon_left_ = false;
  bool is_fit_named_ = false;  // said once
  SignalSteps signals_;
  kube::TaskGroup tasks_;
};

Result<std::vector<Json>> read_all(const std::vector<std::string>& files, std::istream& input) {
  std::vector<Json> all;
  for (const std::string& file : files) {
    auto documents = read_documents(file, input);
    if (!documents) return tl::unexpected(documents.error());
    std::move(documents->begin(), documents->end(), std::back_inserter(all));
  }
  return all;
}

Result<LocalChanges> read_changes(const LocalRunOptions& options) {
  LocalChanges changes;
  // A job that is made of a command has them already.
  if (options.job.command.empty()) {
    changes.nodes = options.job.nodes;
    changes.procs = options.job.procs;
  }
  changes.is_fitted = options.is_fitted;
  for (const std::string& text : options.mounts) {
    std::error_code is_deleted;
    auto mount = parse_mount(text, std::filesystem::current_path(is_deleted).string());
    if (!mount) return tl::unexpected(mount.error());
    std::error_code error;
    if (!std::filesystem::exists(mount->source, error))
      return kube::fail(kube::ErrorCode::kInvalid, "--mount {}: {} does not exist", text,
                        mount->source);
    changes.mounts.push_back(std::move(*mount));
  }
  return changes;
}

// A new state directory has no runtimes yet.
Task<Result<Json>> make_job_here(Cluster& cluster, JobFlags flags) {
  if (auto made = co_await create_missing_runtimes(cluster.client()); !made)
    co_return tl::unexpected(made.error());
  co_return co_await job_of_command(cluster.client(), std::move(flags), cluster.ns());
}

Result<int> run_jobs(const LocalRunOptions& options, const Registry& registry, Console& console) {
  // The files are read first, so that nothing is started if one cannot be read.
  auto documents = read_all(options.files, console.in);
  if (!documents) return tl::unexpected(documents.error());
  auto changes = read_changes(options);
  if (!changes) return tl::unexpected(changes.error());

  const LocalDaemon daemon(options.state);
  const bool is_new = daemon.is_new();
  const bool was_up = daemon.status().has_value();
  const auto running = daemon.start(kDaemonOptions);
  if (!running) return tl::unexpected(running.error());
  const ClusterOptions access{daemon.kubeconfig(), "", options.ns};
  kube::ApiClient::Options client;
  client.is_strict = true;
  client.on_warning = [&console](std::string_view text) {
    console.err << "-- warning: " << plain_text(text) << std::endl;
  };
  auto cluster = Cluster::connect(access, std::move(client));
  if (!cluster) return tl::unexpected(cluster.error());
  if (!options.job.command.empty()) {
    auto job = (*cluster)->run(make_job_here(**cluster, options.job));
    if (!job) return tl::unexpected(job.error());
    documents->push_back(std::move(*job));
  }
  auto objects = sort_objects(std::move(*documents), (*cluster)->ns(), registry);
  if (!objects) return tl::unexpected(objects.error());

  // Jobs that kubectl or the SDK creates have the daemon's PATH.
  const std::string path = callers_path();
  if (path != running->path) changes->path = path;
  const std::string python = find_program("python3", path);
  if (running->tier)
    console.err << fmt::format("-- local mode, tier {}: images are not used, python3 is {}\n",
                               *running->tier, python.empty() ? "not in PATH" : python);
  else
    console.err << fmt::format("-- local mode {}\n", kNoNode);
  for (const auto* sentences : {&running->notices, &running->changes, &running->unreadable})
    for (const std::string& sentence : *sentences)
      if (!was_up || sentences == &running->unreadable)
        console.err << "-- " << plain_text(sentence) << '\n';
  if (is_new) console.err << "-- " << kNoSandbox;

  LocalRun run(options, std::move(*changes), registry, daemon, running->address, **cluster,
               console);
  const auto followed = (*cluster)->run(run.run(std::move(*objects)));
  if (!followed) return tl::unexpected(followed.error());
  // Advice names its subcommands.
  Console local(console.in, console.out, console.err, console.program + " local",
                console.is_terminal);
  for (const ObjectKey& job : followed->failed) {
    console.out << std::flush;
    WhyOptions why;
    why.cluster = {daemon.kubeconfig(), "", job.ns};
    why.target = {job.name};
    run_why(why, registry, local);
  }
  if (!options.job.command.empty() && !followed->failed.empty()) {
    const auto job = (*cluster)->run((*cluster)->client().get(kTrainJobs, followed->failed[0]));
    return job ? exit_status_of(*job) : static_cast<int>(kExitRefused);
  }
  return followed->is_complete ? kExitDone : kExitRefused;
}

}  // namespace

int run_local_run(const LocalRunOptions& options, const Registry& registry, Console& console) {
  if (const auto checked = check_local_run(options); !checked) {
    console.err << fmt::format("{}: local run: {} (see --help)\n", console.program,
                               checked.error().message);
    return kExitUsage;
  }
  LocalRunOptions named = options;
  if (!options.job.command.empty()) {
    named.job.name = name_of_run(options.job);
    console.err << fmt::format("-- TrainJob {}: ", named.job.name)
                << plain_text(describe_job(options.job)) << std::endl;
    if (options.mode.is_dry_run) return print_job_of_command(named, console);
  }
  const auto code = run_jobs(named, registry, console);
  if (code) return *code;
  console.err << console.program << ": local run: " << code.error().message << '\n';
  return kExitRefused;
}

}  // namespace trainer
