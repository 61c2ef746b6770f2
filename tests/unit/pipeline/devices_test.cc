// The rule for devices: its rows, an admin's names, and the page that prints it.
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/pipeline/accelerators.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using pipeline::DeviceRow;
using pipeline::DeviceRules;

std::string processes_with(const std::string& limits, const DeviceRules& devices = {}) {
  PipelineOptions options = production();
  options.devices = devices;
  const TrainJob job = job_with("trainer: {resourcesPerNode: {limits: " + limits + "}}");
  return env_value(container_in(built(job, torch_runtime(), options), "node"),
                   "PET_NPROC_PER_NODE");
}

TEST_CASE("each kind of device starts a process each", "[devices]") {
  struct Row {
    const char* limits;
    const char* processes;
  };
  const Row row = GENERATE(
      Row{"{nvidia.com/mig-1g.5gb: 2}", "auto"}, Row{"{amd.com/gpu: 4}", "auto"},
      Row{"{gpu.intel.com/i915: 2}", "auto"}, Row{"{aws.amazon.com/neuron: 16}", "16"},
      Row{"{aws.amazon.com/neuroncore: 32}", "32"}, Row{"{google.com/tpu: 4}", "4"},
      Row{"{habana.ai/gaudi: 8}", "8"}, Row{"{nvidia.com/gpu.shared: 4}", "auto"},
      Row{"{nvidia.com/gpu: 2, nvidia.com/gpumem: 8192, nvidia.com/gpucores: 50}", "auto"},
      Row{"{huawei.com/Ascend910: 8}", "8"}, Row{"{huawei.com/Ascend910-2c: 2}", "2"},
      Row{"{volcano.sh/vgpu-number: 2, volcano.sh/vgpu-memory: 3000}", "auto"},
      Row{"{volcano.sh/vgpu-memory: 3000, cpu: 2}", "2"}, Row{"{koordinator.sh/gpu: 100}", "1"},
      Row{"{koordinator.sh/gpu-core: 100, koordinator.sh/gpu-memory: 8Gi}", "1"},
      Row{"{amd.com/cpx_nps4: 2}", "auto"}, Row{"{example.com/GPU-H100: 2}", "auto"},
      Row{"{vpc.amazonaws.com/efa: 32, cpu: 3}", "3"}, Row{"{rdma/hca: 1}", "1"});
  INFO(row.limits);
  CHECK(processes_with(row.limits) == row.processes);
}

TEST_CASE("an admin's names come before the program's", "[devices]") {
  const DeviceRules rules{.counted = {"example.com/npu", "example.com/slice-*"},
                          .ignored = {"example.com/gpu-hours", "example.com/slice-memory"}};
  CHECK(processes_with("{example.com/npu: 4}") == "1");
  CHECK(processes_with("{example.com/npu: 4}", rules) == "4");
  CHECK(processes_with("{example.com/slice-a: 2, example.com/slice-memory: 9}", rules) == "2");
  CHECK(processes_with("{example.com/gpu-hours: 9}") == "auto");
  CHECK(processes_with("{example.com/gpu-hours: 9}", rules) == "1");
  CHECK_FALSE(pipeline::is_accelerator("cpu", DeviceRules{.counted = {"*"}, .ignored = {}}));
}

// A name that the pattern matches: each wildcard is a letter.
std::string example_of(std::string_view pattern) {
  std::string name(pattern);
  std::erase(name, '*');
  std::replace(name.begin(), name.end(), '?', 'x');
  return name;
}

TEST_CASE("no row of the rule is hidden by another one", "[devices]") {
  for (const DeviceRow& row : pipeline::device_rows()) {
    INFO(row.pattern);
    CHECK_FALSE(row.source.empty());
    CHECK(pipeline::is_accelerator(example_of(row.pattern), {}) ==
          (row.process != DeviceRow::Process::kNone));
    const Json container = Json::object(
        {{"resources", Json::object({{"limits", Json::object({{example_of(row.pattern), 3}})}})}});
    const auto count = pipeline::count_devices(container, {});
    if (row.process != DeviceRow::Process::kNone)
      CHECK(count.is_found_by_torchrun == (row.process == DeviceRow::Process::kAuto));
  }
}

TEST_CASE("the page of GPU sharing prints the rule", "[devices]") {
  std::string table = "| name of the resource | processes of `torchrun` | from |\n|---|---|---|\n";
  for (const DeviceRow& row : pipeline::device_rows())
    table += fmt::format("| `{}` | {} | {} |\n", row.pattern,
                         row.process == DeviceRow::Process::kNone   ? "none"
                         : row.process == DeviceRow::Process::kAuto ? "`auto`"
                                                                    : "the number",
                         row.source);
  INFO("the page lacks this table:\n" << table);
  const std::string page = text_of_file("docs/users/gpu-sharing.md");
  CHECK_THAT(page, kube::test::contains(table));
}

}  // namespace
}  // namespace trainer::test
