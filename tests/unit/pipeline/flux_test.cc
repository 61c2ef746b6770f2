#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "kube/model/digest.hh"
#include "runtimes/plugins/flux/curve.hh"
#include "runtimes/plugins/flux/scripts.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

Runtime flux_runtime(const std::string& container = "{name: node, image: i}") {
  return runtime_with("{numNodes: 1, flux: {numProcPerNode: 2}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [)" + container + "]}}}\n");
}

std::string script(const Built& result, const char* name) {
  return std::string(
      dependent(result, "ConfigMap", "j-flux-entrypoint")->find("data")->get_string(name));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns whether bash can parse it; nothing is run.
bool is_bash(const std::string& text) {
  std::FILE* bash = popen("bash -n", "w");
  REQUIRE(bash != nullptr);
  std::fputs(text.c_str(), bash);
  return pclose(bash) == 0;
}

std::string output_of(const std::string& script) {
  const std::string path = fmt::format("/tmp/flux_test-{}.sh", getpid());
  std::ofstream(path) << script;
  std::FILE* bash = popen(("bash " + path).c_str(), "r");
  REQUIRE(bash != nullptr);
  std::string text;
  for (int c = std::fgetc(bash); c != EOF; c = std::fgetc(bash)) text += static_cast<char>(c);
  CHECK(pclose(bash) == 0);
  std::remove(path.c_str());
  return text;
}

TEST_CASE("Z85 encodes the specification's example", "[flux]") {
  CHECK(pipeline::flux::z85_encode("\x86\x4F\xD2\x6F\xB5\x59\xF7\x5B") == "HelloWorld");
  CHECK(pipeline::flux::z85_encode("") == "");
  CHECK_THROWS_AS(pipeline::flux::z85_encode("abc"), std::invalid_argument);
}

TEST_CASE("the certificate follows from the job's uid", "[flux]") {
  const std::string one = pipeline::flux::curve_certificate("j", "uid-1");
  CHECK(one == pipeline::flux::curve_certificate("j", "uid-1"));
  CHECK(one != pipeline::flux::curve_certificate("j", "uid-2"));
  CHECK(has(one, "metadata\n    name = \"j\"\ncurve\n    public-key = \""));
  CHECK(
      has(one, "secret-key = \"" + pipeline::flux::z85_encode(kube::sha256_raw("uid-1")) + "\"\n"));
}

TEST_CASE("a Flux job's pods", "[flux]") {
  const Built result = built(job_with("trainer: {numNodes: 3, command: [lmp, -in], args: [x], env: "
                                      "[{name: FLUX_QUEUE_POLICY, value: easy}]}"),
                             flux_runtime());
  const kube::Json& container = container_in(result, "node");
  CHECK(strings(container.get_array("command")) ==
        Words{"/bin/bash", "/etc/flux-config/entrypoint.sh", "lmp -in x"});
  CHECK(container.get_array("args").empty());
  CHECK(container.get_array("volumeMounts").size() == 5);
  CHECK(pod_in(result, "node").find("spec")->get_array("volumes").size() == 5);
  CHECK(container_in(result, "node", "flux-installer").get_array("volumeMounts").size() == 2);
  CHECK(has(script(result, "init.sh"), "queue-policy = \"easy\""));
  CHECK(
      has(script(result, "init.sh"), "default_connect = \"tcp://%h.j.team.svc.cluster.local:%p\""));
  CHECK(has(script(result, "init.sh"), "{ host = \"j-node-0-[0-2]\" }"));
  CHECK(has(script(result, "entrypoint.sh"), "flux run -N 3 -n 6 \"${command[@]}\""));
  CHECK(has(script(result, "entrypoint.sh"), "--cores=0-1 >"));
  CHECK(has(script(result, "entrypoint.sh"), "= 'j-node-0-0' ]"));
}

TEST_CASE("a Flux job without a trainer section, or without a count, runs the runtime's command",
          "[flux]") {
  const Runtime runtime = flux_runtime("{name: node, image: i, command: [lmp], args: [x]}");
  for (const char* spec : {"{}", "trainer: {}"}) {
    const Built result = built(job_with(spec), runtime);
    CHECK(strings(container_in(result, "node").get_array("command"))[2] == "lmp");
    CHECK(strings(container_in(result, "node").get_array("args")) == Words{"x"});
    CHECK(has(script(result, "init.sh"), "j-node-0-[0]"));
  }
  // Without a command anywhere, people use the instance.
  CHECK(strings(
            container_in(built(job_with("{}"), flux_runtime()), "node").get_array("command"))[2] ==
        "");
}

TEST_CASE("a Flux job's arguments go behind the command, and the runtime's behind them", "[flux]") {
  struct Row {
    const char* trainer;
    const char* command;
  };
  const Row rows[] = {
      {"{args: [job-arg]}", "run job-arg"},
      {"{args: []}", "run"},
      {"{command: [own], args: [job-arg]}", "own job-arg"},
      {"{command: [own]}", "own"},
      // One text is made of several words, as in upstream.
      {"{command: [python train.py], args: [--lr 0.1]}", "python train.py --lr 0.1"},
  };
  const Runtime runtime = flux_runtime("{name: node, image: i, command: [run], args: [rt-arg]}");
  for (const Row& row : rows) {
    INFO(row.trainer);
    const Built result = built(job_with("trainer: " + std::string(row.trainer)), runtime);
    const kube::Json& container = container_in(result, "node");
    CHECK(strings(container.get_array("command")) ==
          Words{"/bin/bash", "/etc/flux-config/entrypoint.sh", row.command});
    CHECK(strings(container.get_array("args")) == Words{"rt-arg"});
  }
}

TEST_CASE("each word of a Flux job's command is one argument, whatever is in it", "[flux]") {
  for (const char* command :
       {"[bash, -c, python train.py]", "[echo, \"it's\", '*', '', $(RANK)]"}) {
    INFO(command);
    const Built result =
        built(job_with(std::string("trainer: {command: ") + command + "}"), flux_runtime());
    Words words{"/bin/bash", "/etc/flux-config/entrypoint.sh", "--"};
    const kube::Json list = yaml(command);
    for (const std::string& word : strings(list.as_array())) words.push_back(word);
    CHECK(strings(container_in(result, "node").get_array("command")) == words);
  }
}

// With the argument that earlier versions, and upstream, have written, too.
TEST_CASE("the entrypoint gives the command to flux", "[flux]") {
  const std::string script = entrypoint_script(pipeline::flux::Instance());
  const std::size_t begin = script.find("if [ \"${1:-}\" = -- ]");
  const std::size_t end = script.find("\nfi\n", begin);
  REQUIRE(end != std::string::npos);
  const std::string head = script.substr(begin, end + 4 - begin);
  struct Row {
    const char* arguments;
    const char* printed;
  };
  for (const Row& row : {Row{"'python train.py --lr 0.1'", "<python><train.py><--lr><0.1>"},
                         Row{"'' extra", "<extra>"}, Row{"''", "<>"},
                         Row{"-- bash -c 'python train.py && echo ok' extra",
                             "<bash><-c><python train.py && echo ok><extra>"},
                         Row{"-- echo \"it's\" '*' ''", "<echo><it's><*><>"}}) {
    INFO(row.arguments);
    CHECK(output_of("set -- " + std::string(row.arguments) + "\n" + head +
                    "printf '<%s>' \"${command[@]}\"\n") == row.printed);
  }
}

TEST_CASE("devices are handed out to tasks", "[flux]") {
  using pipeline::flux::Instance;
  Instance instance{"h[0-1]", "h0", "d", "eth0", "fcfs", 2, 2, 4};
  CHECK(has(entrypoint_script(instance), "-N 2 -n 4 -g 2 "));
  CHECK(has(entrypoint_script(instance), "--cores=0-1 --gpus=0-3"));
  instance.accelerators = 1;  // fewer than tasks: none can have one to itself
  CHECK_FALSE(has(entrypoint_script(instance), " -g "));
  CHECK(has(entrypoint_script(instance), "--gpus=0 "));
}

TEST_CASE("the scripts are bash, and nothing is left to fill in", "[flux]") {
  const Built result = built(job_with("trainer: {numNodes: 2}"), flux_runtime());
  for (const char* name : {"init.sh", "entrypoint.sh"}) {
    CHECK(is_bash(script(result, name)));
    CHECK_FALSE(has(script(result, name), "@H"));
    CHECK_FALSE(has(script(result, name), "@R"));
  }
}

TEST_CASE("a long name leaves its volume a short one", "[flux]") {
  TrainJob job = job_with("{}");
  job.metadata.name = std::string(48, 'a');
  const Built result = built(job, flux_runtime());
  CHECK(pod_in(result, "node").find("spec")->get_array("volumes")[2].get_string("name") ==
        "flux-entrypoint");
  CHECK(dependent(result, "ConfigMap", job.metadata.name + "-flux-entrypoint") != nullptr);
}

TEST_CASE("the installer's name is reserved", "[flux]") {
  Runtime runtime = flux_runtime();
  CHECK(validate_trainjob(job_with("{}"), nullptr, runtime).empty());
  runtime.spec.template_->spec->replicatedJobs[0].template_["spec"]["template"]["spec"].set(
      "initContainers", yaml("[{name: flux-installer, image: i}]"));
  CHECK(paths_of(validate_trainjob(job_with("{}"), nullptr, runtime)) == Words{"spec.runtimeRef"});
}

TEST_CASE("the cluster's domain is the installation's", "[flux]") {
  PipelineOptions options = production();
  options.cluster_domain = "corp.internal";
  CHECK(has(script(built(job_with("{}"), flux_runtime(), options), "init.sh"),
            "%h.j.team.svc.corp.internal:%p"));
}

TEST_CASE("the explanation names the plugin of each volume", "[flux]") {
  std::vector<Explanation> notes;
  const auto result =
      build(job_with("trainer: {command: [lmp]}"), flux_runtime(), production(), &notes);
  REQUIRE(result);
  const std::string pod = "spec.replicatedJobs[node].template.spec.template.spec";
  for (const kube::Json& volume : pod_in(*result, "node").get("spec").get_array("volumes")) {
    const std::string path = fmt::format("{}.volumes[{}]", pod, volume.get_string("name"));
    INFO(path);
    const auto note = std::ranges::find(notes, path, &Explanation::path);
    REQUIRE(note != notes.end());
    CHECK(note->source == "plugin flux");
  }
}

}  // namespace
}  // namespace trainer::test
