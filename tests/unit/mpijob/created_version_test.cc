// An object of a shared CRD belongs to one version.
#include "runtimes/views/created_version.hh"

#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "runtimes/admission/mpijob.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;

namespace {

kube::Json object(std::string_view metadata) {
  return *kube::parse_yaml("metadata: {" + std::string(metadata) + "}");
}

}  // namespace

TEST_CASE(
    "an object belongs to the version that its annotation names, else to its oldest writer's") {
  constexpr std::string_view kFields =
      "managedFields: [{apiVersion: kubeflow.org/v1, time: '2026-02-01T00:00:00Z'}, {apiVersion: "
      "kubeflow.org/v1, time: '2025-01-01T00:00:00Z', subresource: status}, {apiVersion: "
      "kubeflow.org/v2beta1, time: '2026-01-01T00:00:00Z'}]";
  CHECK(created_version(object(kFields)) == "v2beta1");
  CHECK(created_version(object("annotations: {trainer.kubeflow.org/created-version: v1}, " +
                               std::string(kFields))) == "v1");
  CHECK(created_version(object("")).empty());
}

TEST_CASE("an object that shows no version belongs to the controllers of all versions") {
  const auto fingerprint = version_fingerprint(
      object("managedFields: [{apiVersion: kubeflow.org/v2beta1, time: '2026-01-01T00:00:00Z'}]"));
  CHECK(is_created_at(fingerprint, "v2beta1"));
  CHECK_FALSE(is_created_at(fingerprint, "v1"));
  CHECK(version_fingerprint(object("")) == std::nullopt);
  CHECK(is_created_at(std::nullopt, "v1"));
  CHECK(is_created_at(std::nullopt, "v2beta1"));
}

TEST_CASE(
    "a new MPIJob of v1 is stamped, and one with members of v2beta1 belongs to that version") {
  const auto stamp = [](kube::Json job, std::string operation = "CREATE") {
    AdmissionRequest request;
    request.operation = std::move(operation);
    request.object = std::move(job);
    const AdmissionAnswer answer = stamp_mpijob(request);
    CHECK(answer.is_allowed);
    std::string text;
    for (const auto& each :
         answer.json_patch.is_array() ? answer.json_patch.as_array() : kube::Json::Array())
      text += kube::print_json(each.get("value"));
    return text + (answer.warnings.empty() ? "" : " " + answer.warnings.front().substr(0, 23));
  };
  CHECK(stamp(mpijob::test::make_mpijob()) == R"({"trainer.kubeflow.org/created-version":"v1"})");
  CHECK(stamp(mpijob::test::make_mpijob("spec: {mpiImplementation: Intel}")) ==
        R"({"trainer.kubeflow.org/created-version":"v2beta1"} spec.mpiImplementation:)");
  CHECK(stamp(mpijob::test::make_mpijob(
                  "metadata: {annotations: {trainer.kubeflow.org/created-version: v2beta1}}"))
            .empty());
  CHECK(stamp(mpijob::test::make_mpijob(), "UPDATE").empty());
}
