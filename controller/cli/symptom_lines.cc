// What libraries and the SDK print before a node fails or waits for ever.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "controller/cli/symptoms.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

constexpr std::size_t kMaxLine = 1'000;

struct LineRule {
  std::string_view name;
  std::initializer_list<std::string_view> words;  // any of them in one line
  std::string_view cause;
  std::string_view next_step;
  bool is_sdk_only = false;  // only for pods whose script the Python SDK has written
  bool is_consequence = false;
};

const LineRule kRules[] = {
    {"shared-memory",
     {"out of shared memory", "unable to open shared memory object", "killed by signal: Bus error",
      "creating shared memory segment", "/dev/shm/nccl-", "unable to write to file </torch_",
      "unable to allocate shared memory", "Signal 7 (SIGBUS)"},
     "shared memory is used up",
     "Mount an emptyDir of medium Memory at /dev/shm in the runtime (64 MiB is the default), or "
     "set num_workers=0 of the DataLoader."},
    {"gpu-memory",
     {"CUDA out of memory", "HIP out of memory", "RESOURCE_EXHAUSTED: Out of memory"},
     "the GPU's memory is used up",
     "Use a smaller batch with gradient accumulation, activation checkpointing, or more GPUs with "
     "FSDP or DeepSpeed ZeRO. If other processes share the GPU, see `nvidia-smi`."},
    {"missing-package",
     {"ModuleNotFoundError: No module named", "ImportError: cannot import name"},
     "the image lacks a Python package",
     "Add it to the image, or with the SDK to CustomTrainer(packages_to_install=[...])."},
    {"missing-package",
     {"Could not find a version that satisfies", "No matching distribution found"},
     "pip finds no such package",
     "Check the name and version in packages_to_install, the image's Python version, and that pods "
     "reach the package index (pip_index_urls)."},
    {"sdk-function",
     {"NameError: name '"},
     "the training function uses a name from outside of it",
     "The SDK sends the source of the function alone: move imports, constants and helper functions "
     "into it.",
     true},
    {"sdk-function",
     {"required positional argument", "got an unexpected keyword argument"},
     "the training function gets other arguments than it takes",
     "Pass a dictionary whose keys are the function's parameters as "
     "CustomTrainer(func_args={...}).",
     true},
    {"network-interface",
     {"no socket interface found", "Unable to find address for", "Unable to find interface for"},
     "the network interface that NCCL or Gloo should use does not exist",
     "Set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to an interface of the pod (`kubectl exec POD "
     "-- ls /sys/class/net`; mostly eth0), or remove them."},
    {"no-peer",
     {"gai error", "Name or service not known", "Temporary failure in name resolution",
      "Could not resolve host", "nodename nor servname"},
     "a host name cannot be resolved",
     "If it is a node of the job: check CoreDNS, and that no NetworkPolicy forbids the pods DNS "
     "(port 53) or each other (`kubectl get networkpolicy`). Else: check the name, and whether "
     "pods may leave the cluster."},
    {"no-peer",
     {"clients joined", "RendezvousTimeoutError", "No route to host",
      "The client socket has timed out",
      "The client socket has failed to connect to any network address",
      "socketStartConnect: Connect to", "Socket Timeout"},
     "the nodes do not reach each other",
     "Check that no NetworkPolicy forbids traffic between the job's pods (`kubectl get "
     "networkpolicy`), and that all nodes have started.",
     false,
     true},
    {"file-locks",
     {"No locks available", "Stale file handle", "Errno 37", "database is locked"},
     "a file lock fails on a network file system",
     "Keep caches with lock files (HF_HOME, TORCH_HOME, TRITON_CACHE_DIR) in an emptyDir, or mount "
     "NFS with a lock daemon or with nolock."},
    {"nccl-timeout",
     {"Watchdog caught collective operation timeout", "ncclSystemError", "ncclRemoteError",
      "NCCL timeout"},
     "NCCL timed out waiting for another rank",
     "Look for the rank that stopped first: its output says why. If all wait: check that ranks "
     "call the same operations, and NCCL_DEBUG=INFO for the interface. Slow steps, such as "
     "checkpoints, need init_process_group(timeout=...).",
     false,
     true},
    {"gloo-timeout",
     {"for recv operation", "for send operation", "connectFullMesh failed",
      "Connection closed by peer", "gloo/transport/tcp/pair.cc"},
     "Gloo timed out waiting for another rank",
     "Look for the rank that stopped first: its output says why. If all wait: check "
     "GLOO_SOCKET_IFNAME, NetworkPolicies, and init_process_group(timeout=...).",
     false,
     true},
};

std::string line_of(const PodOutput& output, std::string_view line) {
  return fmt::format("{}: {}",
                     output.pod.empty() ? "the first failure" : "output of pod " + output.pod,
                     keep_head(line, kMaxLine));
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

Symptom symptom_of(const LineRule& rule, std::string evidence) {
  return {std::string(rule.name),
          std::string(rule.cause),
          {std::move(evidence)},
          std::string(rule.next_step)};
}

// The last line of `text` with one of the rule's words; "" where there is none.
std::string_view find_line(std::string_view text, const LineRule& rule) {
  while (!text.empty()) {
    const auto start = text.find_last_of('\n');
    const auto line = start == std::string_view::npos ? text : text.substr(start + 1);
    for (const std::string_view words : rule.words)
      if (line.find(words) != std::string_view::npos) return line;
    text = start == std::string_view::npos ? std::string_view() : text.substr(0, start);
  }
  return {};
}

}  // namespace

std::vector<Symptom> recognise_lines(const WhyFacts& facts, const std::vector<PodOutput>& outputs) {
  const bool is_sdk = is_script_of_sdk(facts);
  std::vector<Symptom> symptoms;
  for (const LineRule& rule : kRules) {
    if (rule.is_sdk_only && !is_sdk) continue;
    for (const PodOutput& output : outputs) {
      const std::string_view line = find_line(output.text, rule);
      if (line.empty()) continue;
      symptoms.push_back(symptom_of(rule, line_of(output, line)));
      break;
    }
  }
  return symptoms;
}

Symptom symptom_of_rule(std::string_view name, std::string evidence) {
  return symptom_of(*std::find_if(std::begin(kRules), std::end(kRules),
                                  [name](const LineRule& rule) { return rule.name == name; }),
                    std::move(evidence));
}

bool is_consequence(const Symptom& symptom) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&symptom](const LineRule& rule) {
    return rule.is_consequence && rule.cause == symptom.cause;
  });
}

std::optional<Symptom> recognise_script_error(const std::vector<PodOutput>& outputs) {
  const auto waits_for_others = [](std::string_view text) {
    return std::any_of(std::begin(kRules), std::end(kRules), [text](const LineRule& rule) {
      return rule.is_consequence && !find_line(text, rule).empty();
    });
  };
  for (const PodOutput& output : outputs) {
    const std::string_view error = find_error(output.text);
    if (error.empty() || waits_for_others(output.text)) continue;
    return Symptom{"script-error",
                   fmt::format("the script fails: {}", keep_head(error, kMaxLine)),
                   {line_of(output, error)},
                   "Fix the script; the traceback is in the pod's output. What the other nodes "
                   "report follows from it."};
  }
  return std::nullopt;
}

}  // namespace trainer
