#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/json.hh"

using kube::Json;
using kube::print_json;
using kube::test::json;

namespace {

std::string requests_of(std::string_view spec) {
  Json pod_template = Json::object({{"spec", json(spec)}});
  std::string text;
  for (const auto& [name, amount] : kube::pod_requests(pod_template))
    text += (text.empty() ? "" : " ") + name + "=" + amount.to_string();
  return text;
}

}  // namespace

TEST_CASE("containers are found by name") {
  Json pod =
      json(R"({"spec":{"containers":[{"image":"x"},{"name":"node"},{"name":"both","image":"c"}],
                      "initContainers":[{"name":"setup"},{"name":"both","image":"i"}]}})");
  REQUIRE(kube::find_container(pod, "node"));
  CHECK(kube::find_container(pod, "setup") == nullptr);
  CHECK(kube::find_any_container(pod, "setup")->get_string("name") == "setup");
  CHECK(kube::find_any_container(pod, "both")->get_string("image") == "c");
  CHECK(kube::find_any_container(pod, "none") == nullptr);
  CHECK(kube::find_any_container(pod, "") == nullptr);
  kube::find_container(pod, "node")->set("image", "y");
  CHECK(std::as_const(pod).find("spec")->get_array("containers")[1].get_string("image") == "y");
  const Json odd = json(R"({"spec":{"containers":{"name":"node"}}})");
  CHECK(kube::find_any_container(odd, "node") == nullptr);
  CHECK(kube::find_any_container(Json(), "node") == nullptr);
}

TEST_CASE("upserts replace in place or append, and keep the rest") {
  Json container = json(
      R"({"name":"node","unknown":1,"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{}}]})");
  kube::upsert_env(container, "B", "2");
  kube::upsert_env(container, "C", "");
  CHECK(
      print_json(container) ==
      R"({"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","value":""}],"name":"node","unknown":1})");
  kube::upsert_env(container, json(R"({"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}})"));
  CHECK(print_json(*container.find("env")->as_array().begin()) ==
        R"({"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}})");

  // The result for many at once is that for one after the other.
  Json::Array many;
  for (const char* name : {"C", "D", "E", "F", "G", "H", "D", "I", "J", "B"})
    many.push_back(Json::object({{"name", name}, {"value", std::to_string(many.size())}}));
  Json same = container;
  for (const Json& each : many) kube::upsert_env(same, each);
  kube::upsert_env(container, many);
  CHECK(container == same);

  Json bare = Json::object();
  kube::upsert_volume_mount(bare, json(R"({"name":"v","mountPath":"/a"})"));
  kube::upsert_volume_mount(bare, json(R"({"name":"v","mountPath":"/b"})"));
  kube::upsert_volume_mount(bare, json(R"({"name":"w","mountPath":"/a"})"));
  CHECK(print_json(bare) ==
        R"({"volumeMounts":[{"mountPath":"/a","name":"w"},{"mountPath":"/b","name":"v"}]})");

  Json pod;
  kube::upsert_volume(pod, json(R"({"name":"v","emptyDir":{}})"));
  kube::upsert_volume(pod, json(R"({"name":"v","secret":{}})"));
  kube::add_labels(pod, {{"a", "1"}});
  kube::add_labels(pod, {{"a", "2"}, {"b", "3"}});
  kube::add_annotations(pod, {});
  CHECK(
      print_json(pod) ==
      R"({"metadata":{"labels":{"a":"2","b":"3"}},"spec":{"volumes":[{"name":"v","secret":{}}]}})");
  kube::add_annotations(pod, {{"x", "y"}});
  CHECK(pod.find_path({"metadata", "annotations"})->get_string("x") == "y");
}

TEST_CASE("ports are the same by number or by name, and two without a name are the same") {
  const auto ports = [](std::string_view before, std::string_view port) {
    Json container = Json::object({{"ports", json(before)}});
    kube::upsert_port(container, json(port));
    return print_json(*container.find("ports"));
  };
  CHECK(ports("[]", R"({"containerPort":1})") == R"([{"containerPort":1}])");
  CHECK(ports(R"([{"containerPort":1,"name":"a"}])", R"({"containerPort":2,"name":"b"})") ==
        R"([{"containerPort":1,"name":"a"},{"containerPort":2,"name":"b"}])");
  CHECK(ports(R"([{"containerPort":1,"name":"a"}])", R"({"containerPort":1,"name":"b"})") ==
        R"([{"containerPort":1,"name":"b"}])");
  CHECK(ports(R"([{"containerPort":1,"name":"a"}])", R"({"containerPort":2,"name":"a"})") ==
        R"([{"containerPort":2,"name":"a"}])");
  CHECK(ports(R"([{"containerPort":1}])", R"({"containerPort":2})") == R"([{"containerPort":2}])");
}

TEST_CASE("read_resources leaves out what is no quantity") {
  const Json container =
      json(R"({"resources":{"requests":{"cpu":2,"memory":"1Gi","a":"x","b":null},"limits":[]}})");
  const auto requests = kube::read_resources(container, "requests");
  CHECK(requests.size() == 2);
  CHECK(requests.find("memory")->second.to_string() == "1Gi");
  CHECK(kube::read_resources(container, "limits").empty());
  CHECK(kube::read_resources(Json(), "limits").empty());
}

// Each expectation is what component-helpers v0.34 answers.
TEST_CASE("pod_requests aggregates as the scheduler does") {
  struct Case {
    std::string_view spec, requests;
  };
  const Case cases[] = {
      {"{}", ""},
      {R"({"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},{"resources":{"requests":{"cpu":1}}},{}]})",
       "cpu=1500m memory=1Gi"},
      {R"({"containers":[{"resources":{"requests":{"cpu":1}}}],
           "initContainers":[{"resources":{"requests":{"cpu":3}}},{"resources":{"requests":{"cpu":2,"gpu":1}}}]})",
       "cpu=3 gpu=1"},
      // A sidecar runs beside the containers, and beside the init containers that come after it.
      {R"({"containers":[{"resources":{"requests":{"cpu":1}}}],
           "initContainers":[{"resources":{"requests":{"cpu":3}}},
                             {"restartPolicy":"Always","resources":{"requests":{"cpu":1}}}]})",
       "cpu=3"},
      {R"({"containers":[{"resources":{"requests":{"cpu":1}}}],
           "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":1}}},
                             {"resources":{"requests":{"cpu":3}}}]})",
       "cpu=4"},
      {R"({"containers":[{"resources":{"requests":{"cpu":5}}}],
           "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":1}}},
                             {"restartPolicy":"Always","resources":{"requests":{"cpu":2}}}]})",
       "cpu=8"},
      {R"({"containers":[{"resources":{"requests":{"cpu":1}}}],"overhead":{"cpu":"250m","memory":"64Mi"}})",
       "cpu=1250m memory=64Mi"},
      {R"({"containers":[{"resources":{"requests":{"cpu":1,"gpu":1}}}],"resources":{"requests":{"cpu":4,"gpu":9,"hugepages-2Mi":"4Mi"}},
           "overhead":{"cpu":1}})",
       "cpu=5 gpu=1 hugepages-2Mi=4Mi"},
      {R"({"containers":[{"resources":{"limits":{"cpu":4}}}]})", "cpu=4"},
  };
  for (const auto& c : cases) {
    INFO(c.spec);
    CHECK(requests_of(c.spec) == c.requests);
  }
}

TEST_CASE("limits count as requests where the API server would default them") {
  CHECK(requests_of(
            R"({"containers":[{"resources":{"limits":{"cpu":4,"gpu":2},"requests":{"cpu":1}}}],
                        "initContainers":[{"resources":{"limits":{"cpu":2}}}]})") == "cpu=2 gpu=2");
}

TEST_CASE("a template as a client with Go types writes it back") {
  struct Case {
    std::string_view before, after;
  };
  const Case cases[] = {
      {R"({"resources":{"limits":{"cpu":1},"requests":{"cpu":0.5,"memory":"1024Mi","x":"many"}}})",
       R"({"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"500m","memory":"1Gi","x":"many"}}})"},
      {R"({"overhead":{"memory":"0.5Gi"},"volumes":[{"emptyDir":{"medium":"","sizeLimit":"1024Mi"}}]})",
       R"({"overhead":{"memory":"512Mi"},"volumes":[{"emptyDir":{"sizeLimit":"1Gi"}}]})"},
      {R"({"resourceFieldRef":{"divisor":1,"resource":"limits.cpu"}})",
       R"({"resourceFieldRef":{"divisor":"1","resource":"limits.cpu"}})"},
      {R"({"resourceFieldRef":{"resource":"limits.cpu"}})",
       R"({"resourceFieldRef":{"divisor":"0","resource":"limits.cpu"}})"},
      {R"({"a":null,"args":[],"emptyDir":{},"labels":{},"containers":[]})",
       R"({"containers":[],"emptyDir":{},"labels":{}})"},
      {R"({"env":[{"name":"A","value":""},{"name":"B","value":"b"}]})",
       R"({"env":[{"name":"A"},{"name":"B","value":"b"}]})"},
      {R"({"httpHeaders":[{"name":"A","value":""}],"secretKeyRef":{"key":"","name":"s"}})",
       R"({"httpHeaders":[{"name":"A","value":""}],"secretKeyRef":{"key":"","name":"s"}})"},
      {R"({"spec":{"hostIPC":false,"hostNetwork":false,"hostPID":true,"nodeName":"","subdomain":""}})",
       R"({"spec":{"hostPID":true}})"},
      {R"({"containers":[{"stdin":false,"tty":false,"volumeMounts":[{"readOnly":false,"subPath":""}]}]})",
       R"({"containers":[{"volumeMounts":[{}]}]})"},
      {R"({"livenessProbe":{"periodSeconds":0,"terminationGracePeriodSeconds":0},"ports":[{"hostPort":0}]})",
       R"({"livenessProbe":{"terminationGracePeriodSeconds":0},"ports":[{}]})"},
      {R"({"tolerations":[{"effect":"","key":"","operator":"Exists","value":""}]})",
       R"({"tolerations":[{"operator":"Exists"}]})"},
      // Pointers, whose zeros differ from absence.
      {R"({"spec":{"automountServiceAccountToken":false,"backoffLimit":0,"runtimeClassName":""}})",
       R"({"spec":{"automountServiceAccountToken":false,"backoffLimit":0,"runtimeClassName":""}})"},
      {R"({"csi":{"readOnly":false},"nfs":{"readOnly":false}})",
       R"({"csi":{"readOnly":false},"nfs":{}})"},
      // Names of users, which mean nothing here.
      {R"({"annotations":{"value":""},"labels":{"env":"","limits":"1024Mi"},"nodeSelector":{"sizeLimit":"1024Mi"}})",
       R"({"annotations":{"value":""},"labels":{"env":"","limits":"1024Mi"},"nodeSelector":{"sizeLimit":"1024Mi"}})"},
      {"[]", "[]"},
      {"7", "7"},
  };
  for (const auto& c : cases) {
    INFO(c.before);
    Json value = json(c.before);
    kube::write_as_go(value);
    CHECK(print_json(value) == c.after);
    kube::write_as_go(value);
    CHECK(print_json(value) == c.after);
  }
}

TEST_CASE("canonical quantities leave all else") {
  Json value = json(R"({"args":[],"env":[{"value":""}],"limits":{"cpu":2},"sizeLimit":"x"})");
  kube::canonicalise_quantities(value);
  CHECK(print_json(value) ==
        R"({"args":[],"env":[{"value":""}],"limits":{"cpu":"2"},"sizeLimit":"x"})");
}
