#include "controller/cli/symptoms.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "controller/cli/symptom_rules.hh"
#include "controller/cli/why_report.hh"
#include "kube/model/meta.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Time;

// If a node ends later than the others by less than this, it is no symptom.
constexpr std::int64_t kNodeEndDelay = 60;  // seconds

struct Inputs {
  const ObjectState& state;
  const WhyFacts& facts;
  Time now;
};

using enum Source;
using Clues = std::vector<Clue>;

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string_view pod_name(const Json& pod) {
  return pod.get("metadata").get_string("name");
}

// Calls `use(pod, container status)` for each container.
template <class Use>
void for_each_container(const WhyFacts& facts, const Use& use) {
  for (const Json& pod : facts.pods)
    for (const char* list : {"initContainerStatuses", "containerStatuses"})
      for (const Json& container : pod.get("status").get_array(list)) use(pod, container);
}

// Calls `use(pod, container status, how it ended)`, also for containers that were started again.
template <class Use>
void for_each_end(const WhyFacts& facts, const Use& use) {
  for_each_container(facts, [&use](const Json& pod, const Json& container) {
    for (const char* when : {"state", "lastState"})
      if (const Json* ended = container.find_path({when, "terminated"}))
        use(pod, container, *ended);
  });
}

// With older kubelets, ImagePullBackOff does not have the registry's message, but the event has.
std::string registry_words(const WhyFacts& facts, std::string message) {
  if (!contains(message, "desc = ")) {
    for (const Json& event : facts.events)
      if (contains(event.get_string("message"), "Failed to pull image"))
        message = event.get_string("message");
  }
  const auto at = message.rfind("desc = ");
  return at == std::string::npos ? message : message.substr(at + 7);
}

void add_pull(const Inputs& in, Clues& clues) {
  for_each_container(in.facts, [&](const Json&, const Json& container) {
    const Json& waiting = container.get_path({"state", "waiting"});
    const std::string_view reason = waiting.get_string("reason");
    if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
        reason == "ErrImageNeverPull")
      clues.push_back({kPull, registry_words(in.facts, std::string(waiting.get_string("message"))),
                       fmt::format("image {} cannot be pulled", container.get_string("image")),
                       "the registry: "});
  });
}

// The event was about a step that is done: a pod has been created since, or has a machine.
bool is_outdated(const Inputs& in, const Json& event) {
  const std::string_view reason = event.get_string("reason");
  if (reason == "FailedCreate") {
    const auto at = time_of_event(event);
    return std::any_of(in.facts.pods.begin(), in.facts.pods.end(), [&at](const Json& pod) {
      return at && at < kube::ObjectMeta::of(pod).creation_timestamp;
    });
  }
  if (reason != "FailedScheduling") return false;
  const std::string_view name = event.get("involvedObject").get_string("name");
  return std::any_of(in.facts.pods.begin(), in.facts.pods.end(), [name](const Json& pod) {
    return pod_name(pod) == name && !pod.get("spec").get_string("nodeName").empty();
  });
}

std::string claims_of(const std::vector<Json>& pods) {
  std::set<std::string_view> names;
  for (const Json& pod : pods)
    for (const Json& volume : pod.get("spec").get_array("volumes"))
      if (const Json* claim = volume.find("persistentVolumeClaim"))
        names.insert(claim->get_string("claimName"));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Events stay for an hour. So they are not read for a job that runs or has ended: they may be those
// of its start.
void add_messages(const Inputs& in, Clues& clues) {
  const std::string claims = claims_of(in.facts.pods);
  const auto add = [&](std::string_view text) {
    clues.push_back({kMessage, std::string(text), claims});
  };
  add(in.state.message);
  if (!in.state.is_finished && in.state.phase != "Running")
    for (const Json& event : in.facts.events)
      if (!is_outdated(in, event)) add(event.get_string("message"));
  for (const Json& pod : in.facts.pods)
    for (const Json& condition : pod.get("status").get_array("conditions"))
      add(condition.get_string("message"));
}

std::string memory_limit(const Json& pod, std::string_view container) {
  for (const char* list : {"initContainers", "containers"})
    for (const Json& each : pod.get("spec").get_array(list))
      if (each.get_string("name") == container)
        if (const Json* limit = each.find_path({"resources", "limits", "memory"}))
          return limit->is_string() ? limit->as_string() : std::string();
  return {};
}

void add_ends(const Inputs& in, Clues& clues) {
  for_each_end(in.facts, [&](const Json& pod, const Json& container, const Json& ended) {
    const std::string_view name = container.get_string("name");
    const std::string where = fmt::format("container {} of pod {}", name, pod_name(pod));
    if (ended.get_string("reason") == "OOMKilled") {
      const std::string limit = memory_limit(pod, name);
      clues.push_back({kKilled,
                       limit.empty() ? where + " was ended by the kernel (OOMKilled)"
                                     : fmt::format("{}: limit {}, peak {}: the kernel ended it "
                                                   "when it asked for more (OOMKilled)",
                                                   where, limit, limit),
                       where});
    }
    if (ended.get_int("signal") == 7 || ended.get_int("exitCode") == 128 + 7)
      clues.push_back({kBusError, where + " was ended by a bus error (signal 7)"});
  });
  for (const Json& pod : in.facts.pods)
    if (const Json& status = pod.get("status"); status.get_string("reason") == "Evicted")
      clues.push_back({kEvicted, std::string(status.get_string("message")),
                       fmt::format("pod {}", pod_name(pod))});
  for (const std::string& line : in.state.evidence) clues.push_back({kStatus, line});
}

std::string digest_of(const Json& container) {
  const std::string_view id = container.get_string("imageID");
  const auto at = id.rfind("sha256:");
  return at == std::string_view::npos ? std::string() : std::string(id.substr(at));
}

// Pods of one replicated job have the same template.
std::optional<Symptom> different_images(const Inputs& in) {
  if (in.facts.read_place == nullptr) return std::nullopt;
  struct Seen {
    std::string image;
    std::map<std::string, std::vector<std::string_view>> pods;  // by digest
  };
  std::map<std::pair<std::string, std::string_view>, Seen> containers;  // by job and name
  for (const Json& pod : in.facts.pods) {
    const auto place = in.facts.read_place(kube::ObjectMeta::of(pod));
    if (!place) continue;
    for (const Json& container : pod.get("status").get_array("containerStatuses")) {
      const std::string digest = digest_of(container);
      if (digest.empty()) continue;
      Seen& seen = containers[{place->role, container.get_string("name")}];
      seen.image = container.get_string("image");
      seen.pods[digest].push_back(pod_name(pod));
    }
  }
  for (const auto& [key, seen] : containers) {
    if (seen.pods.size() < 2) continue;
    Symptom symptom{"different-images",
                    fmt::format("pods run different images under the name {}", seen.image),
                    {},
                    "Name the image by its digest or by a tag that never moves; with "
                    "imagePullPolicy: Always each machine asks the registry again."};
    for (const auto& [digest, pods] : seen.pods)
      symptom.evidence.push_back(
          fmt::format("{}: {}", digest.substr(0, 19), fmt::join(pods, ", ")));
    return symptom;
  }
  return std::nullopt;
}

// Returns the latest end of a pod's containers.
Time end_of(const Json& pod) {
  Time latest;
  for (const Json& container : pod.get("status").get_array("containerStatuses"))
    if (const auto time =
            Time::parse(container.get_path({"state", "terminated"}).get_string("finishedAt")))
      latest = std::max(latest, *time);
  return latest;
}

struct Finish {
  std::vector<std::int32_t> running;  // their ranks
  int finished = 0;
  Time last;
};

std::optional<Symptom> runs_on(const Inputs& in) {
  if (in.facts.read_place == nullptr || in.state.is_finished) return std::nullopt;
  std::map<std::string, Finish> jobs;
  for (const Json& pod : in.facts.pods) {
    const auto place = in.facts.read_place(kube::ObjectMeta::of(pod));
    if (!place || !place->is_node) continue;
    Finish& job = jobs[place->role];
    const std::string_view phase = pod.get("status").get_string("phase");
    if (phase == "Running") job.running.push_back(std::max(place->index, place->job_index));
    if (phase != "Succeeded") continue;
    ++job.finished;
    job.last = std::max(job.last, end_of(pod));
  }
  for (auto& [role, job] : jobs) {
    const auto waited = in.now.seconds() - job.last.seconds();
    if (job.finished == 0 || job.running.empty() || waited < kNodeEndDelay) continue;
    std::sort(job.running.begin(), job.running.end());
    const bool is_one = job.running.size() == 1;
    return Symptom{
        "runs-on",
        fmt::format("{} of {} finished, {} {} {} on", job.finished,
                    job.finished + static_cast<int>(job.running.size()), is_one ? "rank" : "ranks",
                    fmt::join(job.running, ", "), is_one ? "runs" : "run"),
        {fmt::format("the last of the others in {} ended {} minutes ago", role, waited / 60)},
        "Training is over, and a process does not exit: call destroy_process_group() at the end, "
        "and stop threads, DataLoader workers and loggers that go on. `kubectl exec` with py-spy "
        "shows where it waits."};
  }
  return std::nullopt;
}

// The texts that the kubelet kept of ended containers are also read: their logs may be gone.
Clues outputs_of(const ObjectState& state, const WhyFacts& facts) {
  Clues outputs;
  const auto add = [&outputs](std::string_view pod, std::string_view text) {
    outputs.push_back({kOutput, std::string(text), {}, fmt::format("output of pod {}: ", pod)});
  };
  for (const PodOutput& output : facts.outputs) add(output.pod, output.text);
  for_each_end(facts, [&add](const Json& pod, const Json&, const Json& ended) {
    add(pod_name(pod), ended.get_string("message"));
  });
  const std::string& kept = state.last_output;
  if (!kept.empty())
    outputs.push_back({kOutput, kept.substr(kept.find('\n') + 1), {}, "the first failure: "});
  return outputs;
}

bool is_script_of_sdk(const WhyFacts& facts) {
  for (const kube::Json& pod : facts.pods)
    for (const kube::Json& container : pod.get("spec").get_array("containers"))
      for (const char* list : {"command", "args"})
        for (const kube::Json& word : container.get_array(list))
          if (word.is_string() && word.as_string().find("SCRIPT << EOM") != std::string::npos)
            return true;
  return false;
}

}  // namespace

std::vector<Symptom> recognise(const ObjectState& state, const WhyFacts& facts, Time now) {
  if (state.is_finished && !state.is_failed) return {};
  const Inputs in{state, facts, now};
  Clues clues;
  for (const auto add : {add_pull, add_messages, add_ends}) add(in, clues);
  const bool is_sdk = is_script_of_sdk(facts);
  std::vector<Symptom> symptoms = match_rules(clues, is_sdk);
  const auto add = [&symptoms](std::optional<Symptom> found) {
    if (found) symptoms.push_back(std::move(*found));
  };
  add(different_images(in));
  const Clues outputs = outputs_of(state, facts);
  std::vector<Symptom> lines =
      state.has_old_output ? std::vector<Symptom>() : match_rules(outputs, is_sdk);
  if (state.is_failed && symptoms.empty() && !lines.empty() && is_consequence(lines.front()))
    add(recognise_script_error(outputs));
  std::ranges::move(lines, std::back_inserter(symptoms));
  add(runs_on(in));
  return symptoms;
}

}  // namespace trainer
