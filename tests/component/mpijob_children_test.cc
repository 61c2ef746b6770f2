// The controller of MPIJobs keeps little of Services, ConfigMaps, Secrets and Jobs.
#include <fmt/format.h>

#include <string>

#include "controller/kinds/mpijob/children.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "tests/support/catch.hh"

namespace trainer::mpijob {
namespace {

std::string object_of(std::string_view kind, const std::string& members) {
  return fmt::format(
      R"({{"metadata":{{"name":"m","namespace":"n","uid":"u","resourceVersion":"1",)"
      R"("annotations":{{"a":"{}"}},"ownerReferences":[{{"apiVersion":"kubeflow.org/v2beta1",)"
      R"("kind":"{}","name":"m","uid":"owner","controller":true}}]}},{}}})",
      std::string(9'000, 'a'), kind, members);
}

std::string kept_of(const kube::Resource& resource, const std::string& members,
                    std::string_view kind = "MPIJob") {
  const auto stored = child_transform(resource)(object_of(kind, members));
  REQUIRE(stored);
  CHECK(stored->controller_uid == "owner");
  CHECK(stored->body.size() <= kMaxChildText);
  return stored->body.size() == 0 ? std::string() : kube::print_json(*stored->object());
}

TEST_CASE("of an MPIJob's children only what plans read is kept") {
  const std::string hosts = "m-worker-0 slots=1\n";
  const std::string data = R"("data":{"hostfile":"m-worker-0 slots=1\n"})";
  CHECK(kept_of(kube::kConfigMaps, data) ==
        fmt::format(R"({{"data":{{"hostfile":"{}"}}}})", kube::sha256_hex(hosts)));
  CHECK(kept_of(kube::kSecrets, R"("data":{"ssh-privatekey":"c2VjcmV0"})") ==
        R"({"data":{"ssh-privatekey":true}})");
  CHECK(kept_of(kube::kServices, R"("spec":{"selector":{"a":"b"},"ports":[{"port":1}]})") ==
        R"({"spec":{"selector":{"a":"b"}}})");
  CHECK(kept_of(kube::kJobs, R"("spec":{"suspend":true,"template":{"metadata":{"labels":{"x":)"
                             R"("y"}},"spec":{"nodeSelector":{"p":"q"},"containers":[{}]}}},)"
                             R"("status":{"failed":2,"active":1})") ==
        R"({"spec":{"suspend":true,"template":{"spec":{"nodeSelector":{"p":"q"}}}},)"
        R"("status":{"failed":2}})");
}

TEST_CASE("of objects that only pretend to be an MPIJob's, memory keeps little") {
  std::string many;
  for (int i = 0; i < 5'000; ++i) many += fmt::format(R"({}"key-{:050}":"x")", i ? "," : "", i);
  for (const kube::Resource* each : {&kube::kConfigMaps, &kube::kSecrets})
    CHECK(kept_of(*each, R"("data":{)" + many + "}").empty());
  CHECK(kept_of(kube::kServices, R"("spec":{"selector":{)" + many + "}}").empty());
  CHECK(kept_of(kube::kJobs, R"("spec":{"template":{"spec":{"nodeSelector":{)" + many + "}}}}")
            .empty());
  CHECK(kept_of(kube::kConfigMaps, R"("data":{"hostfile":""})", "Deployment").empty());
  // A long value is a digest.
  CHECK_FALSE(
      kept_of(kube::kConfigMaps, R"("data":{"hostfile":")" + std::string(900'000, 'h') + R"("})")
          .empty());
}

}  // namespace
}  // namespace trainer::mpijob
