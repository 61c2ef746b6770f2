#include "controller/cli/job_table.hh"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "controller/cli/job_list.hh"
#include "controller/ui/progress.hh"
#include "kube/model/saturating.hh"
#include "kube/model/text.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Time;

constexpr std::size_t kGap = 3;  // kubectl's tables have it, too

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

// A cell is one line.
std::string one_cell(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return text;
}

std::string text_of_seconds(std::int64_t seconds) {
  return ui::age_of(Time(), Time().after(seconds));
}

}  // namespace

std::optional<std::int64_t> JobLine::waited(Time now) const {
  if (!created) return std::nullopt;
  if (started) return std::max<std::int64_t>(0, started->seconds() - created->seconds());
  if (!is_waiting) return std::nullopt;
  return std::max<std::int64_t>(0, now.seconds() - created->seconds());
}

Json JobLine::to_json(Time now) const {
  Json json = Json::object({{"kind", kind},
                            {"namespace", key.ns},
                            {"name", key.name},
                            {"state", state},
                            {"reason", reason},
                            {"message", message},
                            {"nodes", nodes},
                            {"queue", queue},
                            {"isWaiting", is_waiting},
                            {"isFinished", is_finished},
                            {"isFailed", is_failed}});
  if (devices) json.set("devices", *devices);
  if (created) json.set("creationTimestamp", created->to_string());
  if (started) json.set("startTime", started->to_string());
  if (const auto seconds = waited(now)) json.set("waitSeconds", *seconds);
  return json;
}

JobLine read_job_line(const KindRegistration& kind, const Json& object) {
  const auto meta = kube::ObjectMeta::of(object);
  const ObjectState state = kind.why->read_state(object, "").value_or(ObjectState{"Unknown"});
  JobLine line;
  line.kind = kube::to_lower(kind.controller.resource().kind);
  line.key = meta.key();
  line.state = meta.deletion_timestamp ? "Terminating" : state.phase;
  line.reason = state.reason;
  line.message = state.message;
  line.nodes = state.nodes;
  line.devices = kind.jobs->count_devices(object);
  line.queue = queue_of(meta.labels);
  line.created = meta.creation_timestamp;
  line.started = Time::parse(object.get("status").get_string("startTime"));
  line.is_finished = state.is_finished;
  line.is_failed = state.is_failed;
  line.is_waiting = !line.started && !line.is_finished && state.phase != kind.jobs->running;
  return line;
}

// The parts of a job show its devices as they are, the job itself only what it asks for.
const JobLine* JobLines::count_parts(const std::string& owner) {
  const auto at = lines_.find(owner);
  const auto parts = parts_.find(owner);
  if (at == lines_.end() || parts == parts_.end()) return nullptr;
  std::int64_t devices = 0;
  for (const auto& [uid, each] : parts->second) devices = kube::saturating_add(devices, each);
  if (at->second.devices == devices) return nullptr;
  at->second.devices = devices;
  return &at->second;
}

const JobLine* JobLines::upsert(const KindRegistration& kind, const Json& object) {
  const auto meta = kube::ObjectMeta::of(object);
  if (const auto* owner = owner_among_jobs(registry_, meta)) {
    parts_[owner->uid][meta.uid] = kind.jobs->count_devices(object).value_or(0);
    return count_parts(owner->uid);
  }
  JobLine line = read_job_line(kind, object);
  const auto [at, is_new] = lines_.try_emplace(meta.uid);
  const JobLine before = std::exchange(at->second, std::move(line));
  count_parts(meta.uid);
  return is_new || at->second != before ? &at->second : nullptr;
}

std::optional<JobLine> JobLines::remove(const std::string& uid) {
  parts_.erase(uid);
  for (auto& [owner, parts] : parts_)
    if (parts.erase(uid) > 0) count_parts(owner);
  const auto at = lines_.find(uid);
  if (at == lines_.end()) return std::nullopt;
  JobLine line = std::move(at->second);
  lines_.erase(at);
  return line;
}

std::vector<JobLine> JobLines::sorted() const {
  std::vector<JobLine> all;
  for (const auto& [uid, line] : lines_) all.push_back(line);
  std::sort(all.begin(), all.end(), [](const JobLine& a, const JobLine& b) {
    return std::tie(a.is_finished, b.created, a.key, a.kind) <
           std::tie(b.is_finished, a.created, b.key, b.kind);
  });
  return all;
}

std::vector<std::string> JobTable::head() const {
  std::vector<std::string> cells{"JOB", "STATE", "NODES", "GPUS", "QUEUE", "WAIT", "AGE"};
  if (columns_.has_namespace) cells.insert(cells.begin(), "NAMESPACE");
  if (columns_.has_reason) cells.insert(cells.end(), {"REASON", "MESSAGE"});
  return cells;
}

std::vector<std::string> JobTable::cells(const JobLine& line, Time now) const {
  const auto waited = line.waited(now);
  std::vector<std::string> cells{line.name(),
                                 or_dash(line.state),
                                 or_dash(line.nodes),
                                 line.devices ? std::to_string(*line.devices) : "-",
                                 or_dash(line.queue),
                                 waited ? text_of_seconds(*waited) : "-",
                                 line.created ? ui::age_of(*line.created, now) : "-"};
  if (columns_.has_namespace) cells.insert(cells.begin(), line.key.ns);
  if (columns_.has_reason)
    cells.insert(cells.end(), {or_dash(line.reason), or_dash(one_cell(line.message))});
  return cells;
}

std::string JobTable::padded(const std::vector<std::string>& cells) const {
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    row += cells[i];
    const std::size_t width = std::max(widths_[i], cells[i].size()) + kGap;
    if (i + 1 < cells.size()) row.append(width - cells[i].size(), ' ');
  }
  return row + "\n";
}

std::string JobTable::first(const std::vector<JobLine>& lines, Time now) {
  std::vector<std::vector<std::string>> rows{head()};
  for (const JobLine& line : lines) rows.push_back(cells(line, now));
  widths_.assign(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
  std::string text;
  for (const auto& row : rows) text += padded(row);
  return text;
}

std::string JobTable::row(const JobLine& line, Time now) const {
  return padded(cells(line, now));
}

}  // namespace trainer
