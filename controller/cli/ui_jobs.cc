#include "controller/cli/ui_jobs.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/job_list.hh"
#include "controller/cli/log_merge.hh"
#include "controller/cli/log_print.hh"
#include "kube/client/with_deadline.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"
#include "kube/model/visible_text.hh"
#include "runtimes/views/labels.hh"

namespace trainer {

using kube::ErrorCode;
using kube::Json;
using kube::Task;

namespace {

constexpr std::size_t kMaxRows = 300;
constexpr std::size_t kMaxListPages = 4;  // each page has 500 objects of one kind
constexpr std::size_t kMaxPodRows = 200;
constexpr std::size_t kMaxLogs = 16;  // pods whose logs are shown together
constexpr std::int64_t kTailOfOne = 300;
constexpr std::int64_t kTailOfEach = 50;
constexpr std::size_t kMaxLogLine = 2'000;
constexpr std::size_t kMaxAnnotation = 2'000;
constexpr std::size_t kMaxEvidence = 32;
// A node that is gone answers no question about logs.
constexpr kube::Milliseconds kWhyDeadline{20'000};
constexpr kube::Milliseconds kLogsDeadline{5'000};
constexpr std::chrono::milliseconds kLeastKept{900};
// With this factor, at most a tenth of the time is spent on the questions of one page.
constexpr int kKeptFactor = 9;
// It repeats the object, with all values of its environment.
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

std::string resource_name(const kube::Resource& resource) {
  return fmt::format("{}.{}.{}", resource.plural, resource.version, resource.group);
}

std::string state_of_pod(const Json& pod) {
  const Json& status = pod.get("status");
  if (pod.get("metadata").find("deletionTimestamp") != nullptr) return "Terminating";
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      const Json& state = container.get("state");
      if (const Json* waiting = state.find("waiting"))
        if (const auto reason = waiting->get_string("reason"); !reason.empty())
          return std::string(reason);
      const Json& ended = state.get("terminated");
      if (const auto code = ended.get_int("exitCode"); code != 0)
        return fmt::format("exit code {} ({})", code, ended.get_string("reason", "Error"));
    }
  }
  return std::string(status.get_string("phase", "Pending"));
}

std::int64_t restarts_of_pod(const Json& pod) {
  std::int64_t restarts = 0;
  for (const Json& container : pod.get("status").get_array("containerStatuses"))
    restarts += container.get_int("restartCount");
  return restarts;
}

std::string place_of(const LogPod& pod) {
  const std::string prefix = pod.prefix("");
  return std::string(kube::trimmed(prefix, "[] "));
}

kube::StringMap shown_annotations(const kube::ObjectMeta& meta) {
  kube::StringMap shown = meta.annotations;
  shown.erase(kLastApplied);
  for (auto& [name, value] : shown) value = kube::keep_head(value, kMaxAnnotation);
  return shown;
}

ui::View sentence(int status, std::string text) {
  ui::View view{status, "trainer ui", {}};
  view.write = [text = std::move(text)](ui::Html& html) { ui::write_sentence(html, text); };
  return view;
}

ui::View failure_of(const kube::Resource& resource, const kube::ObjectKey& key,
                    const kube::Error& error) {
  const std::string what = resource.kind + " " + key.to_string();
  if (error.code == ErrorCode::kNotFound)
    return sentence(404, what + " does not exist; it may have been deleted.");
  if (error.code == ErrorCode::kForbidden)
    return sentence(403, fmt::format("You may not read {}: {}", what, error.message));
  return sentence(502, fmt::format("{} cannot be read: {}", what, error.message));
}

}  // namespace

UiJobs::UiJobs(kube::ApiClient& client, const Registry& registry, std::string ns,
               std::string program)
    : client_(client), registry_(registry), ns_(std::move(ns)), program_(std::move(program)) {}

kube::Clock::Steady UiJobs::kept_until(kube::Clock::Steady began) const {
  const auto now = client_.clock().steady();
  return now + std::max<kube::Clock::Steady::duration>(kLeastKept, kKeptFactor * (now - began));
}

ui::JobRow UiJobs::row_of(const KindRegistration& kind, const Json& object,
                          const ObjectState& state) {
  const auto meta = kube::ObjectMeta::of(object);
  const auto report = ui::ProgressReport::read(object);
  history_.add(meta.uid, report);
  const kube::Resource& resource = kind.controller.resource();
  ui::JobRow row{
      {resource_name(resource), meta.key()}, resource.kind, state.phase, state.reason, state.nodes};
  row.queue = queue_of(meta.labels);
  row.percent = report.percent;
  row.created = meta.creation_timestamp;
  row.is_finished = state.is_finished;
  row.is_failed = state.is_failed;
  return row;
}

void UiJobs::add_row(const KindRegistration& kind, const Json& object, ui::JobList& list) {
  if (owner_among_jobs(registry_, kube::ObjectMeta::of(object)) != nullptr) return;
  const auto state = kind.why->read_state(object, program_);
  list.rows.push_back(row_of(kind, object, state.value_or(ObjectState{"Unknown"})));
}

Task<std::shared_ptr<const ui::JobList>> UiJobs::read_list() {
  const auto began = client_.clock().steady();
  if (list_.value && began < list_.until) co_return list_.value;
  auto list = std::make_shared<ui::JobList>();
  list->scope = scope_of(ns_);
  OnJob on_job = [this, &list](const KindRegistration& kind, const Json& object) {
    add_row(kind, object, *list);
  };
  auto read = co_await read_jobs(client_, registry_, ns_, kMaxListPages, std::move(on_job));
  list->notes = std::move(read.notes);
  list_ = {kept_until(began), std::move(list)};
  co_return list_.value;
}

Task<ui::View> UiJobs::list(ui::Parameters parameters) {
  const auto turn = co_await turns_.acquire(kube::Semaphore::kNoDeadline);
  const auto read = co_await read_list();
  auto shown = std::make_shared<ui::JobList>(*read);
  shown->search = parameters["search"];
  shown->arrange(kMaxRows);
  ui::View view{200, "Jobs of " + shown->scope, {}};
  view.write = [shown, now = client_.clock().now()](ui::Html& html) {
    ui::write_list(html, *shown, now);
  };
  co_return view;
}

Task<void> UiJobs::read_logs(const KindRegistration& kind, const std::vector<Json>& objects,
                             std::string pod, ui::JobPage& page) {
  std::vector<std::pair<LogPod, ui::PodRow>> all;
  for (const Json& object : objects) {
    auto read = LogPod::read(object, *kind.logs);
    if (!read) continue;
    ui::PodRow row{place_of(*read), read->name,
                   std::string(object.get("spec").get_string("nodeName")), state_of_pod(object),
                   restarts_of_pod(object)};
    if (row.name == pod) page.chosen = pod;
    all.emplace_back(std::move(*read), std::move(row));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LogPod> pods;
  for (auto& [read, row] : all) {
    if (page.chosen.empty() || read.name == pod) pods.push_back(std::move(read));
    page.pods.push_back(std::move(row));
  }
  if (pods.size() > kMaxLogs) {
    page.notes.push_back(fmt::format(
        "The logs of {} of {} pods are shown: choose a rank for another.", kMaxLogs, pods.size()));
    pods.resize(kMaxLogs);
  }
  LogQuery query;
  query.tail = pods.size() == 1 ? kTailOfOne : kTailOfEach;
  PrintLine print = [&page](const LogPod& each, std::string_view container, const LogLine& line) {
    page.log.push_back(each.prefix(container) + " " +
                       kube::keep_head(plain_text(line.text), kMaxLogLine));
  };
  std::function<void(std::string_view)> on_error = [&page](std::string_view what) {
    page.notes.emplace_back(what);
  };
  auto merge = merge_logs(client_, std::move(pods), query, std::move(print), std::move(on_error));
  const auto merged = co_await kube::with_deadline(kLogsDeadline, std::move(merge));
  if (!merged) page.notes.push_back("A part of the logs is missing: " + merged.error().message);
}

Task<std::shared_ptr<const ui::JobPage>> UiJobs::read_evidence(const KindRegistration& kind,
                                                               const Json& object,
                                                               std::string pod) {
  const std::string key = kube::ObjectMeta::of(object).uid + "/" + pod;
  const auto began = client_.clock().steady();
  if (const auto at = evidence_.find(key); at != evidence_.end() && began < at->second.until)
    co_return at->second.value;
  auto page = std::make_shared<ui::JobPage>();
  auto asked = read_why(client_, kind, object, program_);
  auto answer = co_await kube::with_deadline(kWhyDeadline, std::move(asked));
  if (answer) {
    page->cause = answer->report.cause;
    page->state = std::move(answer->report);
    if (kind.logs) co_await read_logs(kind, answer->pods, pod, *page);
  } else {
    page->state = kind.why->read_state(object, program_).value_or(ObjectState{});
    page->notes.push_back("Not everything can be read: " + answer.error().message);
  }
  if (page->log.empty() && !page->state.last_output.empty())
    page->log.push_back(plain_text(page->state.last_output));
  page->more_pods = page->pods.size() - std::min(page->pods.size(), kMaxPodRows);
  page->pods.resize(page->pods.size() - page->more_pods);
  if (evidence_.size() >= kMaxEvidence) evidence_.clear();
  evidence_[key] = {kept_until(began), page};
  co_return page;
}

Task<ui::View> UiJobs::job(ui::Parameters parameters) {
  const kube::ObjectKey key{parameters["namespace"], parameters["name"]};
  const auto kind =
      std::find_if(registry_.begin(), registry_.end(), [&parameters](const KindRegistration& each) {
        return is_job_kind(each) &&
               resource_name(each.controller.resource()) == parameters["resource"];
      });
  if (kind == registry_.end() || key.name.empty() || key.ns.empty())
    co_return sentence(404, "There is no such kind of job.");
  if (!ns_.empty() && key.ns != ns_)
    co_return sentence(404, fmt::format("This program was started for namespace {}.", ns_));
  const auto turn = co_await turns_.acquire(kube::Semaphore::kNoDeadline);
  const kube::Resource& resource = kind->controller.resource();
  const auto object = co_await client_.get(resource, key);
  if (!object) co_return failure_of(resource, key, object.error());
  const auto evidence = co_await read_evidence(*kind, *object, parameters["pod"]);
  const auto meta = kube::ObjectMeta::of(*object);
  const auto state = kind->why->read_state(*object, program_);
  auto page = std::make_shared<ui::JobPage>(*evidence);
  page->job = row_of(*kind, *object, state.value_or(ObjectState{"Unknown"}));
  page->annotations = shown_annotations(meta);
  page->report = ui::ProgressReport::read(*object);
  page->curves = history_.of(meta.uid);
  ui::View view{200, resource.kind + " " + key.to_string(), {}};
  view.write = [page, now = client_.clock().now()](ui::Html& html) {
    ui::write_job(html, *page, now);
  };
  co_return view;
}

}  // namespace trainer
