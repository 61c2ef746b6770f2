// An MPI launcher waits until DNS knows its hosts.
#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/plugins/registry.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

using namespace trainer;
using kube::Json;

namespace {

// The spec of a launcher's pods, of a JobSet whose `spec` begins with `head`.
Json launcher(std::string_view head, std::string_view pod,
              jobset::JobDecorators decorators = production_job_decorators()) {
  Json object = test::yaml(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec:\n" +
      std::string(head) + "  replicatedJobs:\n" +
      "  - {name: launcher, template: {spec: {template: {spec: " + std::string(pod) + "}}}}");
  jobset::apply_webhook_defaults(object);
  const auto read = read_jobset(object);
  REQUIRE(read);
  return *jobset::all_jobs(*read, {}, decorators).at(0).find_path({"spec", "template", "spec"});
}

constexpr std::string_view kPod =
    "{containers: [{name: other}, {name: node, image: 'mpi:1', imagePullPolicy: Never, "
    "resources: {limits: {cpu: 2}}, securityContext: {runAsUser: 1000}, env: [{name: E, value: "
    "v}], "
    "volumeMounts: [{name: mpi-ssh-auth, mountPath: /root/.ssh}, {name: mpi-hostfile, mountPath: "
    "/etc/mpi}]}]}";

std::string with(std::string_view members) {
  return "{" + std::string(members) + ", " + std::string(kPod.substr(1));
}

std::string names_of_init(const Json& pod) {
  std::string names;
  for (const Json& container : pod.get_array("initContainers"))
    names += std::string(container.get_string("name")) + " ";
  return names;
}

}  // namespace

TEST_CASE("a launcher waits in its own image, with the rights and resources that it has") {
  const Json pod = launcher("", kPod);
  REQUIRE(pod.get_array("initContainers").size() == 1);
  Json waiting = pod.get_array("initContainers")[0];
  const Json command = waiting["command"];
  waiting.erase("command");
  CHECK(waiting == *kube::parse_json(R"({
    "name": "wait-for-hosts", "image": "mpi:1", "imagePullPolicy": "Never",
    "resources": {"limits": {"cpu": 2}}, "securityContext": {"runAsUser": 1000},
    "volumeMounts": [{"name": "mpi-hostfile", "mountPath": "/etc/mpi"}],
    "terminationMessagePolicy": "FallbackToLogsOnError"})"));
  REQUIRE(command.as_array().size() == 6);
  CHECK(command.as_array()[0] == "sh");
  CHECK(command.as_array()[4] == "/etc/mpi/hostfile");
  CHECK(command.as_array()[5] == "j");
}

TEST_CASE("the own name follows the subdomain, and is not waited for on the host's network") {
  const auto own = [](const Json& pod) {
    return pod.get_array("initContainers").at(0).get_array("command").at(5).as_string();
  };
  CHECK(own(launcher("  network: {subdomain: hosts}\n", kPod)) == "hosts");
  CHECK(own(launcher("", with("hostNetwork: true"))).empty());
  CHECK(own(launcher("", with("hostNetwork: false"))) == "j");
}

TEST_CASE("who waits for hosts") {
  const std::string own = "initContainers: [{name: wait-for-hosts, image: mine}]";
  struct Row {
    const char* what;
    std::string head;
    std::string pod;
    const char* names;
  };
  const Row rows[] = {
      {"a launcher", "", std::string(kPod), "wait-for-hosts "},
      {"after what the runtime prepares", "", with("initContainers: [{name: a}, {name: b}]"),
       "a b wait-for-hosts "},
      {"the runtime waits by itself", "", with(own), "wait-for-hosts "},
      {"no hostfile", "", "{containers: [{name: node, volumeMounts: [{name: v, mountPath: /v}]}]}",
       ""},
      {"names are said at once", "  network: {publishNotReadyAddresses: true}\n", std::string(kPod),
       "wait-for-hosts "},
      {"names need a ready pod", "  network: {publishNotReadyAddresses: false}\n",
       std::string(kPod), ""},
      {"no names at all", "  network: {enableDNSHostnames: false}\n", std::string(kPod), ""},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(names_of_init(launcher(row.head, row.pod)) == row.names);
  }
  CHECK(names_of_init(launcher("", kPod, {})).empty());
  CHECK(launcher("", with(own)).get_array("initContainers")[0].get_string("image") == "mine");
}
