#include "controller/cli/why_report.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "controller/cli/terminal_text.hh"

namespace trainer {

using kube::Json;
using kube::Time;

namespace {

constexpr std::size_t kMaxPods = 5;
constexpr std::size_t kMaxEvents = 5;

std::string age(Time then, Time now) {
  const auto seconds = std::max<std::int64_t>(0, now.seconds() - then.seconds());
  if (seconds < 120) return fmt::format("{}s ago", seconds);
  if (seconds < 7'200) return fmt::format("{}m ago", seconds / 60);
  return fmt::format("{}h ago", seconds / 3'600);
}

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, text.find_last_not_of("\n ") + 1));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// Returns why one container waits, or with which error it ended. The result is "" if it has no
// problem.
std::string problem_of(const Json& container) {
  const std::string_view name = container.get_string("name");
  if (const Json* waiting = container.find_path({"state", "waiting"})) {
    const std::string_view reason = waiting->get_string("reason");
    if (reason == "PodInitializing" || reason == "ContainerCreating") return {};
    return fmt::format("container {} waits: {}: {}", name, reason,
                       one_line(waiting->get_string("message")));
  }
  for (const char* state : {"state", "lastState"}) {
    const Json* ended = container.find_path({state, "terminated"});
    if (ended == nullptr || ended->get_int("exitCode") == 0) continue;
    return fmt::format("container {} ended with exit code {} ({})", name,
                       ended->get_int("exitCode"), ended->get_string("reason", "Error"));
  }
  return {};
}

// Returns "" for a pod without a problem.
std::string problem_of_pod(const Json& pod) {
  const auto meta = kube::ObjectMeta::of(pod);
  const Json& status = pod.get("status");
  const std::string node(pod.get("spec").get_string("nodeName"));
  const std::string place = node.empty() ? "" : " on " + node;
  const auto line = [&](std::string_view what) {
    return fmt::format("pod {}{}: {}", meta.name, place, what);
  };
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      const std::string problem = problem_of(container);
      if (!problem.empty()) return line(problem);
    }
  }
  const Json& scheduled = kube::condition_of(pod, "PodScheduled");
  if (scheduled.get_string("status") == "False") {
    return line(fmt::format("{}: {}", scheduled.get_string("reason"),
                            one_line(scheduled.get_string("message"))));
  }
  if (status.get_string("phase") == "Failed") {
    return line(fmt::format("failed: {} {}", status.get_string("reason"),
                            one_line(status.get_string("message"))));
  }
  return {};
}

// `reported` is what the report contains already; an event with the same message is left out.
std::vector<std::string> warnings_of(const std::vector<Json>& events, const std::string& reported,
                                     Time now) {
  std::vector<std::pair<Time, const Json*>> warnings;
  for (const Json& event : events) {
    if (event.get_string("type") != "Warning") continue;
    const std::string message = one_line(event.get_string("message"));
    // A long message is cut in an event.
    const std::string_view shown =
        std::string_view(message).substr(0, message.size() - (message.ends_with(" ...") ? 4 : 0));
    if (!shown.empty() && reported.find(shown) != std::string::npos) continue;
    warnings.emplace_back(time_of_event(event).value_or(Time()), &event);
  }
  std::stable_sort(warnings.begin(), warnings.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (warnings.size() > kMaxEvents) warnings.resize(kMaxEvents);
  std::vector<std::string> lines;
  for (const auto& [time, event] : warnings) {
    const auto count = event->get_int("count", 1);
    const Json& about = event->get("involvedObject");
    lines.push_back(fmt::format(
        "event on {} {}, {}{}: {}: {}", about.get_string("kind"), about.get_string("name"),
        age(time, now), count > 1 ? fmt::format(", {} times", count) : "",
        event->get_string("reason"), one_line(event->get_string("message"))));
  }
  return lines;
}

bool is_known(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(), [&text](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

// The most likely cause comes first; the others may be its consequences.
void add_symptoms(std::vector<Symptom> symptoms, WhyReport& report) {
  std::vector<std::string> lines;
  for (const Symptom& symptom : symptoms) {
    if (&symptom != &symptoms.front()) lines.push_back("also: " + symptom.cause);
    for (const std::string& line : symptom.evidence)
      if (!is_known(report.evidence, line)) lines.push_back(one_line(line));
  }
  report.evidence.insert(report.evidence.begin(), lines.begin(), lines.end());
  if (symptoms.empty()) return;
  report.cause = one_line(symptoms.front().cause);
  report.next_step = std::move(symptoms.front().next_step);
}

}  // namespace

std::optional<Time> time_of_event(const Json& event) {
  for (const char* member : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (const auto time = Time::parse(event.get_string(member))) return time;
  }
  return std::nullopt;
}

WhyReport why(const kube::Resource& resource, const kube::ObjectKey& key, ObjectState state,
              const WhyFacts& facts, Time now) {
  std::vector<Symptom> symptoms = recognise(state, facts, now);
  WhyReport report{std::move(state), "", resource.kind, key.to_string()};
  for (std::string& text : describe_ends(facts.process_ends))
    report.evidence.push_back(std::move(text));
  std::vector<std::string> problems;
  for (const Json& pod : facts.pods) {
    std::string problem = problem_of_pod(pod);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  const std::size_t shown = std::min(problems.size(), kMaxPods);
  for (std::size_t i = 0; i < shown; ++i) report.evidence.push_back(std::move(problems[i]));
  if (problems.size() > shown) {
    report.evidence.push_back(
        fmt::format("and {} more pods that are not well", problems.size() - shown));
  }
  for (std::string& warning : warnings_of(facts.events, one_line(report.message), now))
    report.evidence.push_back(std::move(warning));
  if (facts.are_events_cut)
    report.evidence.push_back("the namespace has more warnings than were read: kubectl get events");
  add_symptoms(std::move(symptoms), report);
  for (std::string* text :
       {&report.phase, &report.reason, &report.cause, &report.message, &report.next_step})
    *text = printable(*text, TerminalText::kPlain);
  for (std::string& line : report.evidence) line = printable(line, TerminalText::kPlain);
  return report;
}

Json WhyReport::to_json() const {
  return Json::object({{"job", job},
                       {"phase", phase},
                       {"reason", reason},
                       {"cause", cause},
                       {"message", message},
                       {"evidence", Json::Array(evidence.begin(), evidence.end())},
                       {"nextStep", next_step}});
}

std::string WhyReport::to_text() const {
  std::string text = fmt::format("{} {}: {}", kind, job, phase.empty() ? "not started" : phase);
  if (!reason.empty()) text += fmt::format(" ({})", reason);
  if (!cause.empty()) text += ": " + cause;
  text += "\n";
  const auto add = [&text](std::string_view lines) {
    text += "  ";
    for (const char c : lines) {
      text.push_back(c);
      if (c == '\n') text += "    ";
    }
    text += "\n";
  };
  if (!message.empty()) add(message);
  if (!evidence.empty()) text += "Evidence:\n";
  for (const std::string& line : evidence) add(line);
  if (!next_step.empty()) {
    text += "Next step:\n";
    add(next_step);
  }
  return text;
}

}  // namespace trainer
