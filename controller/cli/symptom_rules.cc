// The API server, kubelets, registries, libraries and the SDK write these texts if something is
// wrong.
#include "controller/cli/symptom_rules.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using enum Source;

constexpr std::size_t kMaxLine = 1'000;

// This is known of a rank that has printed the words of a rule.
enum class Meaning {
  kCause,
  kRetried,       // the program tries again, and prints nothing when it succeeds
  kUnreached,     // it waits for other ranks, and may never have reached them
  kDisconnected,  // it had reached other ranks, and waits for them
};

struct Rule {
  std::string_view name;
  Source source;
  std::string_view words;  // any of them, with | between them, in a text or a line of output
  // The placeholder {of} is the clue's subject; {after} is the text behind the words, up to a
  // comma.
  std::string_view cause;
  std::string_view next_step;  // with the same names
  bool is_sdk_only = false;    // only for pods whose script the Python SDK has written
  Meaning meaning = Meaning::kCause;
  std::string_view also = {};  // another word that the text must have
};

bool waits_for_others(const Rule& rule) {
  return rule.meaning == Meaning::kUnreached || rule.meaning == Meaning::kDisconnected;
}

constexpr std::string_view kCheckName = "Check the image's name and tag.";
constexpr std::string_view kMoreMemory =
    "Raise the memory in resourcesPerNode, or use less: a smaller batch, fewer DataLoader workers, "
    "or data that is read in pieces.";
constexpr std::string_view kMoreSharedMemory =
    "Mount an emptyDir of medium Memory at /dev/shm in the runtime (64 MiB is the default), or "
    "set num_workers=0 of the DataLoader.";
constexpr std::string_view kBindClaim =
    "Name a StorageClass that exists and has a provisioner (`kubectl get storageclass`), or create "
    "a volume that fits; the pods go on by themselves.";

const Rule kRules[] = {
    {"image-pull", kPull, "toomanyrequests", "{of}: the registry limits pulls",
     "Name a Secret of an account in imagePullSecrets, or use a mirror of the registry."},
    {"image-pull", kPull, "no match for platform",
     "{of}: it is not built for the machine's architecture",
     "Use an image for it, or choose other machines by a nodeSelector for kubernetes.io/arch."},
    {"image-pull", kPull, "invalid reference format", "{of}: its name is not valid", kCheckName},
    {"image-pull", kPull, "pull policy of Never",
     "{of}: its pull policy is Never, and the machine does not have it",
     "Use another imagePullPolicy in the runtime, or load the image on all machines."},
    {"image-pull", kPull, "no space left", "{of}: the machine's disk is full",
     "Ask an admin to make room on the machine that the pod is on."},
    {"image-pull", kPull, "x509:", "{of}: the registry's certificate is not trusted",
     "Ask an admin to give the machines the certificate of the registry's CA."},
    // Numbers alone would also match in digests.
    {"image-pull", kPull, "nauthorized|403 Forbidden|denied", "{of}: the registry refuses access",
     "Check the image's name, and name a Secret with access to the registry in imagePullSecrets of "
     "the runtime or its ServiceAccount."},
    {"image-pull", kPull, "not found|manifest unknown",
     "{of}: the registry has no such image or tag", kCheckName},
    {"image-pull", kPull, "no such host|dial tcp|timeout", "{of}: the registry cannot be reached",
     "Check the registry's name, and that the machines reach it through DNS, proxy and firewall."},
    {"image-pull", kPull, "", "{of}: the pull fails", kCheckName},
    {"quota", kMessage, "exceeded quota: ", "ResourceQuota {after} is used up",
     "Free some of it, ask for less in resourcesPerNode or numNodes, or ask its administrator for "
     "more: `kubectl describe resourcequota {after}`."},
    // The scheduler may write "not found" behind this, too.
    {"unbound-claim", kMessage, "unbound immediate PersistentVolumeClaims",
     "claim {of} is not bound", kBindClaim},
    {"unbound-claim", kMessage, "persistentvolumeclaim \"", "a claim does not exist",
     "Create the claim that the message names; the pods go on by themselves.", false,
     Meaning::kCause, "not found"},
    {"unbound-claim", kMessage, "persistentvolumeclaim \"", "claim {of} is not bound", kBindClaim},
    {"out-of-memory", kKilled, ": limit ", "out of memory: {of} reached its limit of {after}",
     kMoreMemory},
    {"out-of-memory", kKilled, "", "out of memory: {of} has no limit, its machine had no more",
     kMoreMemory},
    {"out-of-memory", kEvicted, "memory", "out of memory: the machine of {of} had no more",
     "Request as much memory in resourcesPerNode as the message says that the container used, so "
     "that the scheduler finds a machine with room."},
    {"out-of-memory", kStatus, "(OOMKilled)", "out of memory: a container reached its limit",
     kMoreMemory},
    // The kernel sends SIGBUS if it cannot provide memory that a file backs, which for training is
    // /dev/shm.
    {"shared-memory", kBusError, "", "shared memory is used up", kMoreSharedMemory},
    {"shared-memory", kOutput,
     "out of shared memory|unable to open shared memory object|killed by signal: Bus error|"
     "creating shared memory segment|/dev/shm/nccl-|unable to write to file </torch_|"
     "unable to allocate shared memory|Signal 7 (SIGBUS)",
     "shared memory is used up", kMoreSharedMemory},
    {"gpu-memory", kOutput,
     "CUDA out of memory|HIP out of memory|RESOURCE_EXHAUSTED: Out of memory",
     "the GPU's memory is used up",
     "Use a smaller batch with gradient accumulation, activation checkpointing, or more GPUs with "
     "FSDP or DeepSpeed ZeRO. If other processes share the GPU, see `nvidia-smi`."},
    {"missing-package", kOutput,
     "ModuleNotFoundError: No module named|ImportError: cannot import name",
     "the image lacks a Python package",
     "Add it to the image, or with the SDK to CustomTrainer(packages_to_install=[...])."},
    {"missing-package", kOutput,
     "Could not find a version that satisfies|No matching distribution found",
     "pip finds no such package",
     "Check the name and version in packages_to_install, the image's Python version, and that pods "
     "reach the package index (pip_index_urls)."},
    {"sdk-function", kOutput, "NameError: name '",
     "the training function uses a name from outside of it",
     "The SDK sends the source of the function alone: move imports, constants and helper functions "
     "into it.",
     true},
    {"sdk-function", kOutput, "required positional argument|got an unexpected keyword argument",
     "the training function gets other arguments than it takes",
     "Pass a dictionary whose keys are the function's parameters as "
     "CustomTrainer(func_args={{...}}).",
     true},
    {"network-interface", kOutput,
     "no socket interface found|Unable to find address for|Unable to find interface for",
     "the network interface that NCCL or Gloo should use does not exist",
     "Set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to an interface of the pod (`kubectl exec POD "
     "-- ls /sys/class/net`; mostly eth0), or remove them."},
    // PyTorch also warns so while the record of a node that starts is not in DNS yet.
    {"no-peer", kOutput, "cannot be retrieved (gai error", "the name of a node cannot be resolved",
     "Check that the node has started, CoreDNS, and that no NetworkPolicy forbids the pods DNS "
     "(port 53) or each other (`kubectl get networkpolicy`).",
     false, Meaning::kRetried},
    {"no-peer", kOutput,
     "gai error|Name or service not known|Temporary failure in name resolution|"
     "Could not resolve host|nodename nor servname",
     "a host name cannot be resolved",
     "If it is a node of the job: check CoreDNS, and that no NetworkPolicy forbids the pods DNS "
     "(port 53) or each other (`kubectl get networkpolicy`). Else: check the name, and whether "
     "pods may leave the cluster."},
    {"no-peer", kOutput,
     "clients joined|RendezvousTimeoutError|No route to host|The client socket has timed out|"
     "The client socket has failed to connect to any network address|"
     "socketStartConnect: Connect to|Socket Timeout",
     "the nodes do not reach each other",
     "Check that no NetworkPolicy forbids traffic between the job's pods (`kubectl get "
     "networkpolicy`), and that all nodes have started.",
     false, Meaning::kUnreached},
    // Each line is in the middle of a longer text. The first is of OpenMPI 5, the second of
    // OpenMPI 4.
    {"mpi-slots", kOutput, "A \"slot\" is the PRRTE term", "mpirun has fewer slots than processes",
     "OpenMPI 5 reads the job's hostfile only if it is told to: add --hostfile /etc/mpi/hostfile "
     "to mpirun, or the variable PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile to the launcher. "
     "If it has one of them: start fewer processes (-n), or raise slotsPerWorker (of a TrainJob: "
     "numProcPerNode)."},
    {"mpi-slots", kOutput, "A \"slot\" is the Open MPI term",
     "mpirun has fewer slots than processes",
     "Start fewer processes (-n), or raise slotsPerWorker (of a TrainJob: numProcPerNode)."},
    {"file-locks", kOutput, "No locks available|Stale file handle|Errno 37|database is locked",
     "a file lock fails on a network file system",
     "Keep caches with lock files (HF_HOME, TORCH_HOME, TRITON_CACHE_DIR) in an emptyDir, or mount "
     "NFS with a lock daemon or with nolock."},
    {"nccl-timeout", kOutput,
     "Watchdog caught collective operation timeout|ncclSystemError|ncclRemoteError|NCCL timeout",
     "NCCL timed out waiting for another rank",
     "Look for the rank that stopped first: its output says why. If all wait: check that ranks "
     "call the same operations, and NCCL_DEBUG=INFO for the interface. Slow steps, such as "
     "checkpoints, need init_process_group(timeout=...).",
     false, Meaning::kDisconnected},
    {"gloo-timeout", kOutput,
     "for recv operation|for send operation|connectFullMesh failed|Connection closed by peer|"
     "gloo/transport/tcp/pair.cc",
     "Gloo timed out waiting for another rank",
     "Look for the rank that stopped first: its output says why. If all wait: check "
     "GLOO_SOCKET_IFNAME, NetworkPolicies, and init_process_group(timeout=...).",
     false, Meaning::kDisconnected},
};

// Returns where the text behind the rule's words begins.
std::optional<std::size_t> find_words(std::string_view text, const Rule& rule) {
  if (text.find(rule.also) == text.npos) return std::nullopt;
  for (std::string_view rest = rule.words;;) {
    const std::string_view words = rest.substr(0, rest.find('|'));
    if (const auto at = text.find(words); at != text.npos) return at + words.size();
    if (words.size() == rest.size()) return std::nullopt;
    rest.remove_prefix(words.size() + 1);
  }
}

bool is_retried(std::string_view line) {
  return std::ranges::any_of(kRules, [line](const Rule& rule) {
    return rule.meaning == Meaning::kRetried && find_words(line, rule);
  });
}

// Returns the last line of `text` with the rule's words; "" if there is none.
std::string_view find_line(std::string_view text, const Rule& rule) {
  while (!text.empty()) {
    const auto start = text.find_last_of('\n');
    const auto line = start == text.npos ? text : text.substr(start + 1);
    if (find_words(line, rule) && (rule.meaning == Meaning::kRetried || !is_retried(line)))
      return line;
    text = start == text.npos ? std::string_view() : text.substr(0, start);
  }
  return {};
}

// The program has succeeded after this line of its output, for it has lost other ranks since.
bool is_overcome(const Rule& rule, std::string_view line, std::string_view output) {
  if (rule.meaning != Meaning::kRetried) return false;
  const std::string_view rest =
      output.substr(static_cast<std::size_t>(line.data() + line.size() - output.data()));
  return std::ranges::any_of(kRules, [rest](const Rule& other) {
    return other.meaning == Meaning::kDisconnected && !find_line(rest, other).empty();
  });
}

std::string quoted(const Clue& clue, std::string_view text) {
  return clue.prefix + (clue.source == kOutput ? keep_head(text, kMaxLine) : std::string(text));
}

std::optional<Symptom> apply(const Rule& rule, const Clue& clue) {
  const std::string_view text = clue.source == kOutput ? find_line(clue.text, rule) : clue.text;
  const auto end = find_words(text, rule);
  if (!end || is_overcome(rule, text, clue.text)) return std::nullopt;
  const std::string_view after = text.substr(*end);
  const auto filled = [&](std::string_view sentence) {
    return fmt::format(fmt::runtime(sentence), fmt::arg("of", clue.subject),
                       fmt::arg("after", after.substr(0, after.find(','))));
  };
  Symptom symptom{std::string(rule.name), filled(rule.cause), {}, filled(rule.next_step)};
  // Lines of the status are printed in any case.
  if (clue.source != kStatus) symptom.evidence.push_back(quoted(clue, text));
  return symptom;
}

// PyTorch begins lines of a process with its rank: "[rank1]: Traceback (most recent call last):".
std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kEnd = "]: ";
  const auto at = line.starts_with("[rank") ? line.find(kEnd) : line.npos;
  return at == line.npos ? line : line.substr(at + kEnd.size());
}

// The error after the first traceback of the script itself: "ValueError: it is negative"; "" if
// there is none. The traceback of torchrun only says that a process has failed.
std::string_view find_error(std::string_view text) {
  bool is_in_traceback = false;
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view line = without_rank(whole);
    if (line.starts_with("Traceback (most recent call last)")) {
      is_in_traceback = true;
    } else if (is_in_traceback && !line.empty() && !line.starts_with(' ')) {
      is_in_traceback = false;
      if (line.find("ChildFailedError") == line.npos) return line;
    }
  }
  return {};
}

}  // namespace

std::vector<Symptom> match_rules(const std::vector<Clue>& clues, bool is_script_of_sdk) {
  std::map<const Rule*, Symptom> found;  // in the order of the table
  const auto is_found = [&found](const Rule& rule) {
    return std::ranges::any_of(found, [&rule](const auto& other) {
      return other.first == &rule || (rule.source != kOutput && other.second.name == rule.name);
    });
  };
  for (const Clue& clue : clues)
    for (const Rule& rule : kRules)
      if (rule.source == clue.source && (is_script_of_sdk || !rule.is_sdk_only) && !is_found(rule))
        if (auto symptom = apply(rule, clue)) found.emplace(&rule, std::move(*symptom));
  std::vector<Symptom> symptoms;
  for (auto& [rule, symptom] : found) symptoms.push_back(std::move(symptom));
  return symptoms;
}

bool is_consequence(const Symptom& symptom) {
  return std::ranges::any_of(kRules, [&symptom](const Rule& rule) {
    return rule.meaning != Meaning::kCause && rule.cause == symptom.cause;
  });
}

std::optional<Symptom> recognise_script_error(const std::vector<Clue>& outputs) {
  const auto shows_consequence = [](std::string_view text) {
    return std::ranges::any_of(kRules, [text](const Rule& rule) {
      return waits_for_others(rule) && !find_line(text, rule).empty();
    });
  };
  for (const Clue& output : outputs) {
    const std::string_view error = find_error(output.text);
    if (error.empty() || shows_consequence(output.text)) continue;
    return Symptom{"script-error",
                   fmt::format("the script fails: {}", keep_head(error, kMaxLine)),
                   {quoted(output, error)},
                   "Fix the script; the traceback is in the pod's output. What the other nodes "
                   "report follows from it."};
  }
  return std::nullopt;
}

}  // namespace trainer
