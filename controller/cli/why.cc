#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/log_stream.hh"
#include "controller/cli/plan_report.hh"
#include "controller/cli/read_plan.hh"
#include "controller/cli/read_why.hh"
#include "controller/cli/stacks_report.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/stall/saved_stacks.hh"
#include "runtimes/trainjob/stacks.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::size_t kMaxOutputs = 8;  // the number of pods
// Containers may have no log, or their node may not answer, so more are tried.
constexpr int kMaxTries = 2 * kMaxOutputs;
// This many lines are read of each pod. After the error of a script torchrun prints some 40 lines,
// and 8 more for each process. If a pod runs, older lines were printed when it started.
constexpr std::int64_t kLinesOfEnded = 200;
constexpr std::int64_t kLinesOfRunning = 20;
// torchrun's lines about ends of processes are somewhere in the output of the training.
constexpr std::int64_t kLinesOfRestarts = 20'000;
constexpr std::size_t kMaxRestarted = 32;  // the number of pods that are searched
// If a node is gone, its kubelet may answer a part of a log, and then nothing.
constexpr kube::Milliseconds kLongestSilence{5'000};
// Lines may have any length. If there is more text, its end is kept.
constexpr std::size_t kMaxOutput = 1U << 20;
constexpr std::size_t kMaxRead = 64U << 20;

// Calls `take` with each line, until so many are read as a report needs. Both outlive the task.
template <class Take>
Task<void> read_lines(LogStream& stream, Take& take) {
  for (std::size_t read = 0; read < kMaxRead;) {
    const auto line = co_await stream.next(kLongestSilence);
    if (!line || !*line) co_return;
    read += (*line)->text.size() + 1;
    take(**line);
  }
}

Task<PodOutput> read_output(LogStream& stream, std::string pod) {
  PodOutput output{std::move(pod), ""};
  const auto take = [&text = output.text](const LogLine& line) {
    text += line.text + "\n";
    if (text.size() > 2 * kMaxOutput) text.erase(0, text.size() - kMaxOutput);
  };
  co_await read_lines(stream, take);
  co_return output;
}

// Returns when the first of its containers failed; "" if none has. RFC 3339 sorts as text.
std::string time_of_failure(const Json& pod) {
  std::string first;
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const Json& container : pod.get("status").get_array(list)) {
      const Json& ended = container.get_path({"state", "terminated"});
      const std::string_view at = ended.get_string("finishedAt");
      if (ended.get_int("exitCode") != 0 && (first.empty() || at < first)) first = at;
    }
  return first;
}

// Returns the pods that most likely show the cause of a failure first: the pod whose failure the
// status keeps, those that failed in the order in which they did, those that ended, and those that
// run.
std::vector<LogPod> by_evidence(const std::vector<Json>& objects, const LogsHook& hook,
                                const std::string& failed_pod) {
  std::vector<std::pair<std::tuple<bool, bool, bool, std::string>, LogPod>> ranked;
  for (const Json& object : objects) {
    auto pod = LogPod::read(object, hook);
    if (!pod) continue;
    std::string failed = time_of_failure(object);
    const auto rank =
        std::make_tuple(pod->name != failed_pod, failed.empty(), !pod->is_over, std::move(failed));
    ranked.emplace_back(rank, std::move(*pod));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LogPod> pods;
  for (auto& [rank, pod] : ranked) pods.push_back(std::move(pod));
  return pods;
}

// The result has fewer if a log cannot be read: the report has other evidence, too.
Task<std::vector<PodOutput>> read_outputs(kube::ApiClient& client, std::vector<LogPod> pods) {
  LogQuery query;
  std::vector<PodOutput> outputs;
  int tries = 0;
  for (const LogPod& pod : pods) {
    query.tail = pod.is_over ? kLinesOfEnded : kLinesOfRunning;
    for (const LogContainer& container : pod.containers) {
      if (!container.has_log) continue;
      if (outputs.size() == kMaxOutputs || tries++ == kMaxTries) co_return outputs;
      auto stream =
          co_await LogStream::open(client, log_path(pod, container.name, query), kLongestSilence);
      if (!stream && stream.error().code == kube::ErrorCode::kForbidden) co_return outputs;
      if (!stream) continue;
      outputs.push_back(co_await read_output(*stream, pod.name));
    }
  }
  co_return outputs;
}

// Returns what the logs of the first pods say; those that cannot be read are left out.
Task<std::vector<ProcessEnd>> read_process_ends(kube::ApiClient& client,
                                                const std::vector<Json>& objects,
                                                const LogsHook& hook) {
  LogQuery query;
  query.tail = kLinesOfRestarts;
  std::vector<ProcessEnd> ends;
  std::vector<LogPod> pods;
  for (const Json& object : objects)
    if (auto pod = LogPod::read(object, hook)) pods.push_back(std::move(*pod));
  std::sort(pods.begin(), pods.end());
  pods.resize(std::min(pods.size(), kMaxRestarted));
  for (const LogPod& pod : pods) {
    for (const LogContainer& container : pod.containers) {
      if (!container.has_log || !pod.is_node) continue;
      auto stream =
          co_await LogStream::open(client, log_path(pod, container.name, query), kLongestSilence);
      if (!stream && stream.error().code == kube::ErrorCode::kForbidden) co_return ends;
      if (!stream) continue;
      ProcessEndReader reader(pod.prefix(container.name));
      const auto take = [&reader](const LogLine& line) { reader.take(line); };
      co_await read_lines(*stream, take);
      std::ranges::move(std::move(reader).ends(), std::back_inserter(ends));
    }
  }
  co_return ends;
}

std::set<std::string, std::less<>> names_of(const std::vector<Json>& objects) {
  std::set<std::string, std::less<>> names;
  for (const Json& object : objects) {
    names.emplace(object.get("metadata").get_string("name"));
    for (const Json& volume : object.get("spec").get_array("volumes"))
      names.emplace(volume.get("persistentVolumeClaim").get_string("claimName"));
  }
  return names;
}

constexpr std::size_t kMaxEventPages = 20;  // pages of 500 warnings of the namespace

// Reads the Warning events of the object, its Jobs, pods and claims, since it was `created`: older
// ones are about an earlier object of this name. Kinds that the user may not list are left out.
Task<void> read_events(kube::ApiClient& client, kube::ObjectKey key, std::string selector,
                       std::optional<kube::Time> created, WhyFacts& facts) {
  auto names = names_of(facts.pods);
  names.insert(key.name);
  const auto jobs = co_await list_all(client, kube::kJobs, key.ns, std::move(selector));
  if (jobs) names.merge(names_of(*jobs));
  std::function<void(std::string_view)> on_item = [&](std::string_view text) {
    auto event = kube::parse_json(text);
    if (!event) return;
    const auto time = time_of_event(*event);
    const bool is_older = time && time < created;
    if (!is_older && names.contains(event->get("involvedObject").get_string("name")))
      facts.events.push_back(std::move(*event));
  };
  const auto listed = co_await client.list(kube::kEvents, key.ns, "fieldSelector=type%3DWarning",
                                           std::move(on_item), kMaxEventPages);
  if (!listed) facts.events.clear();
  facts.are_events_cut = listed && !listed->continue_token.empty();
}

struct WhyWithPlan {
  WhyReport report;
  // Where it may go, for a job with pods that find no node; nullopt also if that cannot be said.
  std::optional<fit::PlanAnswer> plan = std::nullopt;
};

bool is_unschedulable(const Json& pod) {
  const Json& scheduled = kube::condition_of(pod, "PodScheduled");
  return scheduled.get_string("status") == "False" &&
         scheduled.get_string("reason") == "Unschedulable";
}

Task<Result<WhyWithPlan>> ask(kube::ApiClient& client, const Registry& registry, Target target,
                              kube::ObjectKey key, std::string program) {
  auto object = co_await client.get(target.resource(), key);
  if (!object) co_return tl::unexpected(object.error());
  auto read = co_await read_why(client, *target.kind, *object, program);
  if (!read) co_return tl::unexpected(read.error());
  WhyWithPlan answer{std::move(read->report)};
  if (answer.report.is_finished || !std::ranges::any_of(read->pods, is_unschedulable))
    co_return answer;
  auto plan = co_await read_stored_plan(client, registry, *target.kind, std::move(*object),
                                        std::move(read->pods));
  if (plan) answer.plan = std::move(*plan);
  co_return answer;
}

// Returns null if there are none.
Task<Result<Json>> ask_for_stacks(kube::ApiClient& client, Target target, kube::ObjectKey key) {
  const auto object = co_await client.get(target.resource(), key);
  if (!object) co_return tl::unexpected(object.error());
  kube::ObjectKey stacks_key{key.ns, key.name + std::string(target.kind->why->stacks_suffix)};
  const auto stored = co_await client.get(kube::kConfigMaps, stacks_key);
  if (!stored) {
    if (stored.error().code == kube::ErrorCode::kNotFound) co_return Json();
    co_return tl::unexpected(stored.error());
  }
  const auto meta = kube::ObjectMeta::of(*stored);
  const kube::OwnerReference* const owner = meta.controller();
  if (!owner || owner->uid != kube::ObjectMeta::of(*object).uid) co_return Json();
  const auto bytes = kube::base64_decode(stored->get("binaryData").get_string(kStacksFile));
  auto stacks = stall::read_compressed_stacks(bytes.value_or(""));
  if (!stacks) {
    co_return kube::fail(kube::ErrorCode::kInvalid, "ConfigMap {}: {}: {}", stacks_key.to_string(),
                         kStacksFile, stacks.error().message);
  }
  co_return stacks;
}

int print_stacks(const WhyOptions& options, OpenTarget opened, Console& console) {
  const auto& [target, key, cluster] = opened;
  const kube::Resource& resource = target.resource();
  if (target.kind->why->stacks_suffix.empty()) {
    console.err << fmt::format("{}: why: no stacks are saved of a {}\n", console.program,
                               resource.kind);
    return kExitUsage;
  }
  const auto stacks = cluster->run(ask_for_stacks(cluster->client(), target, key));
  if (!stacks) return report_cluster_error(stacks.error(), resource, key, console);
  if (stacks->is_null()) {
    console.err << fmt::format(
        "No stacks are saved of {} {}: its training has not stalled, or its ranks do not report "
        "(annotation trainer.kubeflow.org/detect-hangs)\n",
        resource.kind, key.to_string());
    return kExitRefused;
  }
  print_value(*stacks, stacks_text(*stacks), options.format, console.out);
  return kExitDone;
}

}  // namespace

Task<Result<WhyAnswer>> read_why(kube::ApiClient& client, const KindRegistration& kind,
                                 const Json& object, std::string_view program) {
  const WhyHook& hook = *kind.why;
  auto state = hook.read_state(object, program);
  if (!state) co_return kube::fail(kube::ErrorCode::kInvalid, kube::to_string(state.error()));
  const auto meta = kube::ObjectMeta::of(object);
  const kube::ObjectKey key = meta.key();
  const std::string selector = label_query(hook.pod_label, key.name);
  auto pods = co_await list_all(client, kube::kPods, key.ns, selector);
  if (!pods) co_return tl::unexpected(pods.error());
  WhyFacts facts;
  facts.pods = std::move(*pods);
  co_await read_events(client, key, selector, meta.creation_timestamp, facts);
  if (const auto& logs = kind.logs; logs && (!state->is_finished || state->is_failed)) {
    facts.read_place = logs->read_place;
    auto ranked = by_evidence(facts.pods, *logs, state->failed_pod);
    facts.outputs = co_await read_outputs(client, std::move(ranked));
  }
  if (kind.logs && state->has_process_restarts)
    facts.process_ends = co_await read_process_ends(client, facts.pods, *kind.logs);
  WhyAnswer answer;
  answer.report =
      why(kind.controller.resource(), key, std::move(*state), facts, client.clock().now());
  answer.pods = std::move(facts.pods);
  co_return answer;
}

int run_why(const WhyOptions& options, const Registry& registry, Console& console) {
  auto opened = open_target(
      registry, "why", options.target,
      [](const KindRegistration& kind) { return kind.why.has_value(); }, options.cluster, console);
  if (!opened) return opened.error();
  if (options.has_stacks) return print_stacks(options, std::move(*opened), console);
  const auto& [target, key, cluster] = *opened;
  const auto answer = cluster->run(ask(cluster->client(), registry, target, key, console.program));
  if (!answer) return report_cluster_error(answer.error(), target.resource(), key, console);
  Json value = answer->report.to_json();
  std::string text = answer->report.to_text();
  if (answer->plan) {
    const std::string title = target.resource().kind + " " + key.to_string();
    value.set("plan", plan_json(*answer->plan, title));
    text += "\n" + plan_text(*answer->plan, title, cluster->client().clock().now());
  }
  print_value(value, text, options.format, console.out);
  return answer->report.is_failed ? kExitRefused : kExitDone;
}

}  // namespace trainer
