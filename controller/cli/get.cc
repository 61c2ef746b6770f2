#include <ostream>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/job_list.hh"
#include "controller/cli/job_table.hh"
#include "controller/cli/verbs.hh"
#include "kube/client/object_sink.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"
#include "kube/server/selector.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;
using kube::server::Selector;

// Concurrency: the io_context thread of the cluster.
class JobGetter {
 public:
  JobGetter(const GetOptions& options, const Registry& registry, Selector selector,
            Cluster& cluster, Console& console)
      : options_(options),
        registry_(registry),
        selector_(std::move(selector)),
        cluster_(cluster),
        console_(console),
        ns_(options.has_all_namespaces ? "" : cluster.ns()),
        lines_(registry),
        table_({options.has_all_namespaces, options.format == "wide"}) {}

  Task<int> run() {
    OnJob on_job = [this](const KindRegistration& kind, const Json& object) { note(kind, object); };
    const JobsRead read =
        co_await read_jobs(cluster_.client(), registry_, ns_, SIZE_MAX, std::move(on_job));
    for (const std::string& sentence : read.notes) console_.err << sentence << '\n';
    if (read.failure) co_return kExitNoCluster;
    if (read.kinds.empty()) co_return kExitRefused;
    print_all();
    if (options_.is_watched) co_await watch(read.kinds);
    co_return kExitDone;
  }

 private:
  // Parts of jobs are counted whatever their labels are.
  const JobLine* note(const KindRegistration& kind, const Json& object) {
    const auto meta = kube::ObjectMeta::of(object);
    if (owner_among_jobs(registry_, meta) != nullptr || selector_.matches(object))
      return lines_.upsert(kind, object);
    lines_.remove(meta.uid);
    return nullptr;
  }

  void print_all() {
    const auto lines = lines_.sorted();
    const kube::Time now = cluster_.client().clock().now();
    if (options_.format == "name") {
      for (const JobLine& line : lines) console_.out << line.name() << '\n';
    } else if (options_.format == "json" || options_.format == "yaml") {
      Json all = Json::array();
      for (const JobLine& line : lines) all.push_back(line.to_json(now));
      const auto format = options_.format == "json" ? OutputFormat::kJson : OutputFormat::kYaml;
      print_value(Json::object({{"jobs", std::move(all)}}), "", format, console_.out);
    } else if (lines.empty()) {
      console_.err << "There are no jobs in " << scope_of(ns_) << ".\n";
    } else {
      console_.out << table_.first(lines, now);
    }
    has_head_ = !lines.empty();
    console_.out.flush();
  }

  void print(const JobLine& line) {
    const kube::Time now = cluster_.client().clock().now();
    if (options_.format == "name") {
      console_.out << line.name() << std::endl;
    } else if (std::exchange(has_head_, true)) {
      console_.out << table_.row(line, now) << std::flush;
    } else {
      console_.out << table_.first({line}, now) << std::flush;
    }
  }

  void note_and_print(const KindRegistration& kind, const Json& object) {
    if (!is_of_version(registry_, kind, object)) return;
    if (const JobLine* line = note(kind, object)) print(*line);
  }

  void remove(const std::string& uid) {
    auto line = lines_.remove(uid);
    if (!line) return;
    line->state = "Deleted";
    print(*line);
  }

  Task<void> watch(std::vector<const KindRegistration*> kinds) {
    std::vector<std::unique_ptr<kube::ObjectSink>> sinks;
    std::function<void(std::string_view, std::string_view)> on_error =
        [this](std::string_view task, std::string_view what) {
          console_.err << task << ": " << what << std::endl;
        };
    kube::TaskGroup tasks(cluster_.io().get_executor(), on_error);
    for (const KindRegistration* kind : kinds) {
      kube::ObjectSink::Handlers handlers;
      handlers.on_upsert = [this, kind](const Json& object) { note_and_print(*kind, object); };
      handlers.on_remove = [this](const std::string& uid) { remove(uid); };
      handlers.on_listed = [] {};
      sinks.push_back(std::make_unique<kube::ObjectSink>(std::move(handlers)));
      kube::WatchOptions watched;
      watched.ns = ns_;
      watched.on_note = [this](std::string_view what, std::string_view detail) {
        if (what == "error" || what == "malformed") console_.err << detail << std::endl;
      };
      const kube::Resource& resource = kind->controller.resource();
      tasks.spawn("watch of " + resource.plural,
                  kube::run_watch(cluster_.client(), resource, *sinks.back(), std::move(watched)));
    }
    co_await tasks.join();
  }

  const GetOptions& options_;
  const Registry& registry_;
  Selector selector_;
  Cluster& cluster_;
  Console& console_;
  const std::string ns_;
  JobLines lines_;
  JobTable table_;
  bool has_head_ = false;  // the head of the table is printed
};

}  // namespace

int run_get(const GetOptions& options, const Registry& registry, Console& console) {
  auto selector = Selector::parse(options.selector, "", kube::Resource());
  if (!selector) {
    console.err << console.program << ": get: --selector: " << selector.error().message << '\n';
    return kExitUsage;
  }
  auto cluster = Cluster::connect(options.cluster);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  JobGetter getter(options, registry, std::move(*selector), **cluster, console);
  return (*cluster)->run(getter.run());
}

}  // namespace trainer
