#include "controller/cli/symptoms.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/cli/why_report.hh"
#include "kube/model/meta.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Time;

// If a node ends later than the others by less than this, it is no symptom.
constexpr std::int64_t kExitPatience = 60;  // seconds

struct Inputs {
  const ObjectState& state;
  const WhyFacts& facts;
  Time now;
};

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string_view pod_name(const Json& pod) {
  return pod.get("metadata").get_string("name");
}

// Calls `use(pod, container status)` for each container, until it returns a symptom.
template <class Use>
std::optional<Symptom> first_of_containers(const WhyFacts& facts, const Use& use) {
  for (const Json& pod : facts.pods)
    for (const char* list : {"initContainerStatuses", "containerStatuses"})
      for (const Json& container : pod.get("status").get_array(list))
        if (auto found = use(pod, container)) return found;
  return std::nullopt;
}

// It was about a step that is done: a pod has been created since, or has a machine.
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

// The first text that contains `words`: a message of the object, of an event, or of a pod's
// condition PodScheduled. Events stay for an hour, so for a job that runs or has ended they are not
// read: they may be those of its start.
std::optional<std::string> find_text(const Inputs& in, std::string_view words) {
  if (contains(in.state.message, words)) return in.state.message;
  if (!in.state.is_finished && in.state.phase != "Running")
    for (const Json& event : in.facts.events)
      if (contains(event.get_string("message"), words) && !is_outdated(in, event))
        return std::string(event.get_string("message"));
  for (const Json& pod : in.facts.pods)
    for (const Json& condition : pod.get("status").get_array("conditions"))
      if (contains(condition.get_string("message"), words))
        return std::string(condition.get_string("message"));
  return std::nullopt;
}

struct PullRule {
  std::string_view words;  // of the registry or of containerd
  std::string_view cause;
  std::string_view next_step;
};

constexpr std::string_view kCheckName = "Check the image's name and tag.";
constexpr std::string_view kCheckAccess =
    "Check the image's name, and name a Secret with access to the registry in imagePullSecrets of "
    "the runtime or its ServiceAccount.";
constexpr std::string_view kCheckRegistry =
    "Check the registry's name, and that the machines reach it through DNS, proxy and firewall.";

constexpr PullRule kPullRules[] = {
    {"toomanyrequests", "the registry limits pulls",
     "Name a Secret of an account in imagePullSecrets, or use a mirror of the registry."},
    {"no match for platform", "it is not built for the machine's architecture",
     "Use an image for it, or choose other machines by a nodeSelector for kubernetes.io/arch."},
    {"invalid reference format", "its name is not valid", kCheckName},
    {"pull policy of Never", "its pull policy is Never, and the machine does not have it",
     "Use another imagePullPolicy in the runtime, or load the image on all machines."},
    {"no space left", "the machine's disk is full",
     "Ask an admin to make room on the machine that the pod is on."},
    {"x509:", "the registry's certificate is not trusted",
     "Ask an admin to give the machines the certificate of the registry's CA."},
    // More than the numbers alone, since digests contain such numbers, too.
    {"nauthorized", "the registry refuses access", kCheckAccess},
    {"403 Forbidden", "the registry refuses access", kCheckAccess},
    {"denied", "the registry refuses access", kCheckAccess},
    {"not found", "the registry has no such image or tag", kCheckName},
    {"manifest unknown", "the registry has no such image or tag", kCheckName},
    {"no such host", "the registry cannot be reached", kCheckRegistry},
    {"dial tcp", "the registry cannot be reached", kCheckRegistry},
    {"timeout", "the registry cannot be reached", kCheckRegistry},
    {"", "the pull fails", kCheckName},
};

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

std::optional<Symptom> image_pull(const Inputs& in) {
  return first_of_containers(
      in.facts, [&](const Json&, const Json& container) -> std::optional<Symptom> {
        const Json& waiting = container.get_path({"state", "waiting"});
        const std::string_view reason = waiting.get_string("reason");
        if (reason != "ErrImagePull" && reason != "ImagePullBackOff" &&
            reason != "InvalidImageName" && reason != "ErrImageNeverPull")
          return std::nullopt;
        const std::string words =
            registry_words(in.facts, std::string(waiting.get_string("message")));
        const auto* rule =
            std::find_if(std::begin(kPullRules), std::end(kPullRules) - 1,
                         [&words](const PullRule& each) { return contains(words, each.words); });
        return Symptom{"image-pull",
                       fmt::format("image {} cannot be pulled: {}", container.get_string("image"),
                                   rule->cause),
                       {"the registry: " + words},
                       std::string(rule->next_step)};
      });
}

std::optional<Symptom> quota(const Inputs& in) {
  constexpr std::string_view kWords = "exceeded quota: ";
  const auto text = find_text(in, kWords);
  if (!text) return std::nullopt;
  const std::string rest = text->substr(text->find(kWords) + kWords.size());
  const std::string name = rest.substr(0, rest.find(','));
  return Symptom{"quota",
                 fmt::format("ResourceQuota {} is used up", name),
                 {*text},
                 fmt::format("Free some of it, ask for less in resourcesPerNode or numNodes, or "
                             "ask its administrator for more: `kubectl describe resourcequota {}`.",
                             name)};
}

std::string claims_of(const std::vector<Json>& pods) {
  std::set<std::string_view> names;
  for (const Json& pod : pods)
    for (const Json& volume : pod.get("spec").get_array("volumes"))
      if (const Json* claim = volume.find("persistentVolumeClaim"))
        names.insert(claim->get_string("claimName"));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<Symptom> unbound_claim(const Inputs& in) {
  // The scheduler may write "not found" behind this, too.
  auto text = find_text(in, "unbound immediate PersistentVolumeClaims");
  const bool is_unbound = text.has_value();
  if (!is_unbound) text = find_text(in, "persistentvolumeclaim \"");
  if (!text) return std::nullopt;
  const bool is_absent = !is_unbound && contains(*text, "not found");
  return Symptom{
      "unbound-claim",
      is_absent ? "a claim does not exist"
                : fmt::format("claim {} is not bound", claims_of(in.facts.pods)),
      {*text},
      is_absent ? "Create the claim that the message names; the pods go on by themselves."
                : "Name a StorageClass that exists and has a provisioner (`kubectl get "
                  "storageclass`), or create a volume that fits; the pods go on by themselves."};
}

std::string memory_limit(const Json& pod, std::string_view container) {
  for (const char* list : {"initContainers", "containers"})
    for (const Json& each : pod.get("spec").get_array(list))
      if (each.get_string("name") == container)
        if (const Json* limit = each.find_path({"resources", "limits", "memory"}))
          return limit->is_string() ? limit->as_string() : std::string();
  return {};
}

constexpr const char* kMoreMemory =
    "Raise the memory in resourcesPerNode, or use less: a smaller batch, fewer DataLoader workers, "
    "or data that is read in pieces.";

std::optional<Symptom> out_of_memory(const Inputs& in) {
  auto found = first_of_containers(
      in.facts, [](const Json& pod, const Json& container) -> std::optional<Symptom> {
        const std::string_view name = container.get_string("name");
        for (const char* when : {"state", "lastState"}) {
          const Json& ended = container.get_path({when, "terminated"});
          if (ended.get_string("reason") != "OOMKilled") continue;
          const std::string limit = memory_limit(pod, name);
          const std::string where = fmt::format("container {} of pod {}", name, pod_name(pod));
          return Symptom{
              "out-of-memory",
              limit.empty()
                  ? fmt::format("out of memory: {} has no limit, its machine had no more", where)
                  : fmt::format("out of memory: {} reached its limit of {}", where, limit),
              {limit.empty() ? where + " was ended by the kernel (OOMKilled)"
                             : fmt::format("{}: limit {}, peak {}: the kernel ended it when it "
                                           "asked for more (OOMKilled)",
                                           where, limit, limit)},
              kMoreMemory};
        }
        return std::nullopt;
      });
  if (found) return found;
  for (const Json& pod : in.facts.pods) {
    const std::string_view message = pod.get("status").get_string("message");
    if (pod.get("status").get_string("reason") == "Evicted" && contains(message, "memory"))
      return Symptom{"out-of-memory",
                     fmt::format("out of memory: the machine of pod {} had no more", pod_name(pod)),
                     {std::string(message)},
                     "Request as much memory in resourcesPerNode as the message says that the "
                     "container used, so that the scheduler finds a machine with room."};
  }
  for (const std::string& line : in.state.evidence)
    if (contains(line, "(OOMKilled)"))
      return Symptom{
          "out-of-memory", "out of memory: a container reached its limit", {}, kMoreMemory};
  return std::nullopt;
}

// The kernel sends SIGBUS where memory that a file backs cannot be provided; of what training does,
// that is /dev/shm.
std::optional<Symptom> bus_error(const Inputs& in) {
  return first_of_containers(
      in.facts, [](const Json& pod, const Json& container) -> std::optional<Symptom> {
        for (const char* when : {"state", "lastState"}) {
          const Json& ended = container.get_path({when, "terminated"});
          if (ended.get_int("signal") != 7 && ended.get_int("exitCode") != 128 + 7) continue;
          return symptom_of_rule(
              "shared-memory",
              fmt::format("container {} of pod {} was ended by a bus error (signal "
                          "7)",
                          container.get_string("name"), pod_name(pod)));
        }
        return std::nullopt;
      });
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

// The latest end of a pod's containers.
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
    if (job.finished == 0 || job.running.empty() || waited < kExitPatience) continue;
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

using Recogniser = std::optional<Symptom> (*)(const Inputs& in);

void add(std::vector<Symptom>& symptoms, std::initializer_list<Recogniser> recognisers,
         const Inputs& in) {
  for (const Recogniser recogniser : recognisers)
    if (auto found = recogniser(in)) symptoms.push_back(std::move(*found));
}

// Also what the kubelet kept of containers that have ended: their logs may be gone.
std::vector<PodOutput> all_outputs(const ObjectState& state, const WhyFacts& facts) {
  std::vector<PodOutput> outputs = facts.outputs;
  for (const Json& pod : facts.pods)
    for (const char* list : {"initContainerStatuses", "containerStatuses"})
      for (const Json& container : pod.get("status").get_array(list))
        for (const char* when : {"state", "lastState"}) {
          const std::string_view text =
              container.get_path({when, "terminated"}).get_string("message");
          if (!text.empty()) outputs.push_back({std::string(pod_name(pod)), std::string(text)});
        }
  const std::string& kept = state.last_output;
  if (!kept.empty()) outputs.push_back({"", kept.substr(kept.find('\n') + 1)});
  return outputs;
}

}  // namespace

std::vector<Symptom> recognise(const ObjectState& state, const WhyFacts& facts, Time now) {
  std::vector<Symptom> symptoms;
  if (state.is_finished && !state.is_failed) return symptoms;
  const Inputs in{state, facts, now};
  add(symptoms, {image_pull, quota, unbound_claim, out_of_memory, bus_error, different_images}, in);
  const std::vector<PodOutput> outputs = all_outputs(state, facts);
  std::vector<Symptom> lines = recognise_lines(facts, outputs);
  const bool is_unexplained = symptoms.empty() && !lines.empty() && is_consequence(lines.front());
  if (state.is_failed && is_unexplained)
    if (auto error = recognise_script_error(outputs)) symptoms.push_back(std::move(*error));
  for (Symptom& found : lines) symptoms.push_back(std::move(found));
  add(symptoms, {runs_on}, in);
  return symptoms;
}

}  // namespace trainer
