// Guides look up pods by "JOB-worker-0.JOB": the Service of a job's name, and the host names of its
// pods.
#include <fmt/format.h>

#include "kube/model/resources.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

TEST_CASE("pods have names in a Service of the job's name") {
  World world(make_job("PyTorchJob", "Master Worker"));
  const Json labels = yaml(
      "{training.kubeflow.org/operator-name: pytorchjob-controller, "
      "training.kubeflow.org/job-name: p}");
  const Json& service = world.at("Service/p");
  CHECK(service.get("spec") == Json::object({{"clusterIP", "None"}, {"selector", labels}}));
  CHECK(service.get("metadata").get("labels") == labels);
  CHECK(service.get("metadata").get("ownerReferences") ==
        world.at("Service/p-master-0").get("metadata").get("ownerReferences"));
  for (const std::string& pod : world.names("Pod")) {
    CHECK(world.at("Pod/" + pod).get("spec").get_string("hostname") == pod);
    CHECK(world.at("Pod/" + pod).get("spec").get_string("subdomain") == "p");
  }
  // Pods that run get no other names, so nothing is made for those of an earlier version.
  world.remove("Service/p");
  world.settle();
  CHECK_FALSE(world.has("Service/p"));
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  CHECK(world.names("Service").empty());
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: false}}"));
  world.settle();
  CHECK(world.has("Service/p"));
  for (const std::string& event : world.events) CHECK_FALSE(event.ends_with("service: p"));
  CHECK_FALSE(World(make_job("MPIJob", "Launcher Worker"))
                  .at("Pod/p-worker-0")
                  .get("spec")
                  .find("subdomain"));
}

TEST_CASE("the Service of the job stays as long as a pod runs") {
  for (const std::string policy : {"None", "Running", "All"}) {
    INFO(policy);
    World world(
        make_job("PyTorchJob", "Master Worker", "runPolicy: {cleanPodPolicy: " + policy + "}"));
    world.pod("p-worker-0", "Running");
    world.pod("p-master-0", "Succeeded", 0);
    CHECK(world.conditions().ends_with("Succeeded"));
    CHECK(world.has("Service/p") == (policy == "None"));
    if (policy == "None") world.pod("p-worker-0", "Succeeded", 0);
    CHECK_FALSE(world.has("Service/p"));
    CHECK(world.has("Service/p-master-0") == (policy != "All"));
  }
}

TEST_CASE("a pod gets no host name if its template has one, or if it has no room for one") {
  const auto template_of = [](std::string_view spec) {
    return fmt::format("roles: {{Master: {{template: {{spec: {{{}}}}}}}}}", spec);
  };
  for (const char* own : {"hostname: h", "subdomain: s", "setHostnameAsFQDN: true"}) {
    INFO(own);
    World world(make_job("PyTorchJob", "Master", template_of(own)));
    const Json given = yaml(fmt::format("{{{}}}", own));
    for (const char* member : {"hostname", "subdomain", "setHostnameAsFQDN"})
      CHECK(world.at("Pod/p-master-0").get("spec").get(member) == given.get(member));
  }
  // It was stored before admission had the rule.
  const std::string name(60, 'a');
  World world;
  Json stored = make_job("PyTorchJob", "Master", {}, name);
  stored["metadata"].set("namespace", world.ns).set("uid", "u");
  world.objects["PyTorchJob/" + name] = std::move(stored);
  world.settle();
  CHECK_FALSE(world.at("Pod/" + name + "-master-0").get("spec").find("hostname"));
}

TEST_CASE("a Service that another needs, or has, is not made") {
  World world;
  const Json own = yaml("{kind: Service, metadata: {name: p}, spec: {selector: {a: b}}}");
  world.apply(own);
  REQUIRE(world.apply(make_job("PyTorchJob", "Master")) == 201);
  // A job q may have a pod of this name, which needs a Service of its own.
  REQUIRE(world.apply(make_job("TFJob", "Worker", {}, "q-chief-10")) == 201);
  REQUIRE(world.apply(make_job("TFJob", "Worker", {}, "q-chief-x")) == 201);
  REQUIRE(world.apply(make_job("TFJob", "Worker", {}, "bert-1")) == 201);
  world.settle();
  CHECK(world.at("Service/p").get("spec") == own.get("spec"));
  CHECK(world.conditions() == "Created");
  CHECK(world.names("Service") == std::vector<std::string>{"bert-1", "bert-1-worker-0", "p",
                                                           "p-master-0", "q-chief-10-worker-0",
                                                           "q-chief-x", "q-chief-x-worker-0"});
  // Their names would resolve nowhere, and torchrun sends them to other nodes.
  for (const char* pod : {"Pod/p-master-0", "Pod/q-chief-10-worker-0"})
    CHECK_FALSE(world.at(pod).get("spec").find("subdomain"));
  CHECK(world.at("Pod/q-chief-x-worker-0").get("spec").get_string("subdomain") == "q-chief-x");
  for (const std::string& event : world.events) CHECK_FALSE(event.find("Warning") != event.npos);
  world.remove("PyTorchJob/p");
  CHECK(world.has("Service/p"));
}

TEST_CASE("a job whose Service is refused runs without it") {
  World world;
  world.refusal = kube::Refusal{kube::kServices, "services \"p\" is forbidden: exceeded quota: q",
                                kube::ErrorCode::kForbidden, "p"};
  REQUIRE(world.apply(make_job("PyTorchJob", "Master Worker")) == 201);
  world.settle();
  CHECK(world.names("Service") == std::vector<std::string>{"p-master-0", "p-worker-0"});
  for (const std::string& pod : world.names("Pod"))
    CHECK_FALSE(world.at("Pod/" + pod).get("spec").find("subdomain"));
  CHECK(world.conditions() == "Created");
  // It is not tried again while the pods are there, and is made for the next ones.
  world.refusal.reset();
  world.settle();
  CHECK_FALSE(world.has("Service/p"));
  for (const char* suspend : {"true", "false"}) {
    world.patch("PyTorchJob/p", yaml(fmt::format("spec: {{runPolicy: {{suspend: {}}}}}", suspend)));
    world.settle();
  }
  CHECK(world.has("Service/p"));
  CHECK(world.at("Pod/p-worker-0").get("spec").get_string("subdomain") == "p");
}

TEST_CASE("a job that is resumed leaves a Service alone that came meanwhile") {
  World world(make_job("PyTorchJob", "Master"));
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: true}}"));
  world.settle();
  const Json other = yaml("{kind: Service, metadata: {name: p}, spec: {selector: {a: b}}}");
  world.apply(other);
  world.patch("PyTorchJob/p", yaml("spec: {runPolicy: {suspend: false}}"));
  world.settle();
  CHECK(world.at("Service/p").get("spec") == other.get("spec"));
  CHECK_FALSE(world.at("Pod/p-master-0").get("spec").find("subdomain"));
}
