#include "runtimes/v1/frameworks/processes.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "kube/model/text.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

// Python's int() ignores these ASCII characters around a number.
constexpr std::string_view kSpace = " \t\n\r\v\f";
constexpr std::array<std::string_view, 4> kWords = {"auto", "cpu", "gpu", "xpu"};

std::optional<std::int64_t> number_in(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t number = kube::parse_number<std::int64_t>(text).value_or(kMost);
  return is_negative ? -number : number;
}

// `path` is that of the field that says how many processes each of the nodes has.
void check(std::string path, kube::Json value, std::int64_t nodes, std::int64_t of_node,
           kube::FieldErrors& errors) {
  if (std::string why = refusal_of_processes(nodes, of_node); !why.empty())
    errors.push_back(kube::invalid(std::move(path), std::move(value), std::move(why)));
}

void check_replicas(std::string_view name, const std::optional<std::int32_t>& replicas,
                    kube::FieldErrors& errors) {
  if (replicas && *replicas < 1)
    errors.push_back(kube::invalid(fmt::format("spec.elasticPolicy.{}", name), *replicas,
                                   "torchrun takes 1 or more: write such a number, or leave it "
                                   "out"));
}

}  // namespace

ProcessesOfPod processes_of_pod(const std::string& nproc_per_node) {
  const std::string_view text = kube::trimmed(nproc_per_node, kSpace);
  const auto number = number_in(text);
  if (!number) return {nproc_per_node, std::nullopt};
  const std::int32_t count = process_count(*number);
  return {count == *number ? std::string(text) : std::to_string(count), number};
}

std::int64_t known_processes(const JobSpec& spec) {
  return spec.nprocPerNode ? processes_of_pod(*spec.nprocPerNode).number.value_or(1) : 1;
}

void check_processes(const V1Job& job, kube::FieldErrors& errors) {
  const std::int64_t pods = total_replicas(job);
  if (job.spec.nprocPerNode)
    check("spec.nprocPerNode", *job.spec.nprocPerNode, pods, known_processes(job.spec), errors);
  const auto& elastic = job.spec.elasticPolicy;
  if (!elastic) return;
  const std::int64_t most = std::max<std::int64_t>(pods, elastic->maxReplicas.value_or(1));
  if (elastic->nProcPerNode)
    check("spec.elasticPolicy.nProcPerNode", *elastic->nProcPerNode, most, *elastic->nProcPerNode,
          errors);
  check_replicas("minReplicas", elastic->minReplicas, errors);
  check_replicas("maxReplicas", elastic->maxReplicas, errors);
}

void warn_about_processes(const std::string& nproc_per_node, std::vector<std::string>& warnings) {
  if (std::find(kWords.begin(), kWords.end(), nproc_per_node) != kWords.end()) return;
  const ProcessesOfPod processes = processes_of_pod(nproc_per_node);
  if (!processes.number)
    warnings.push_back(
        fmt::format("spec.nprocPerNode: \"{}\" is no number and no word that torchrun knows, so "
                    "torchrun ends with an error, and WORLD_SIZE counts one process a pod; write "
                    "auto, cpu, gpu, xpu or a number",
                    nproc_per_node));
  else if (nproc_per_node != kube::trimmed(nproc_per_node, kSpace))
    warnings.push_back(fmt::format(
        "spec.nprocPerNode: \"{}\" has white space around the number, and {} is used instead; "
        "write \"{}\"",
        nproc_per_node, processes.text, processes.text));
}

}  // namespace trainer::v1
