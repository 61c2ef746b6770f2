#include <string>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

namespace trainer {
namespace {

kube::Json json(std::string_view text) {
  auto value = kube::parse_json(text);
  if (!value) throw std::logic_error(value.error().message);
  return *std::move(value);
}

std::string refusal(const kube::Json& object) {
  const auto job = read_trainjob(object);
  return job ? "" : kube::to_string(job.error());
}

TEST_CASE("a value of a wrong type is named with its path, what was expected and what was found") {
  const auto [object, message] = GENERATE(table<const char*, const char*>({
      {R"({"spec":{"trainer":{"numNodes":"two"}}})",
       R"(spec.trainer.numNodes: Invalid value: "two": must be of type integer, found string)"},
      {R"({"spec":{"trainer":{"numNodes":1.5}}})",
       R"(spec.trainer.numNodes: Invalid value: 1.5: must be of type integer, found number)"},
      {R"({"spec":{"trainer":{"numProcPerNode":3000000000}}})",
       "spec.trainer.numProcPerNode: Invalid value: 3000000000: must be between -2147483648 and "
       "2147483647"},
      {R"({"spec":{"trainer":{"command":"python"}}})",
       R"(spec.trainer.command: Invalid value: "python": must be of type array, found string)"},
      {R"({"spec":{"trainer":{"command":["a",1]}}})",
       "spec.trainer.command[1]: Invalid value: 1: must be of type string, found integer"},
      {R"({"spec":{"trainer":{"env":[{"name":"A"},"B=1"]}}})",
       R"(spec.trainer.env[1]: Invalid value: "B=1": must be of type object, found string)"},
      {R"({"spec":{"runtimeRef":[]}})",
       "spec.runtimeRef: Invalid value: []: must be of type object, found array"},
      {R"({"spec":{"suspend":1}})",
       "spec.suspend: Invalid value: 1: must be of type boolean, found integer"},
      {R"({"spec":{"runtimePatches":[{"manager":"a/b","time":"noon"}]}})",
       R"(spec.runtimePatches[0].time: Invalid value: "noon": must be an RFC 3339 time such as "2006-01-02T15:04:05Z")"},
      {R"({"status":{"jobsStatus":[{"name":"node","ready":true}]}})",
       "status.jobsStatus[0].ready: Invalid value: true: must be of type integer, found boolean"},
      {R"({"status":{"conditions":["Complete"]}})",
       R"(status.conditions[0]: Invalid value: "Complete": must be of type object, found string)"},
      {R"({"spec":{"suspend":"no","trainer":{"image":5}}})",
       R"([spec.trainer.image: Invalid value: 5: must be of type string, found integer, )"
       R"(spec.suspend: Invalid value: "no": must be of type boolean, found string])"},
  }));
  CHECK(refusal(json(object)) == message);
}

TEST_CASE("a document that is no object is refused as a whole") {
  CHECK_FALSE(read_trainjob(json("[]")));
  CHECK_FALSE(read_jobset(json("null")));
  const auto spec = read_jobset_spec(json("3"), "spec.template.spec");
  REQUIRE_FALSE(spec);
  CHECK(kube::to_string(spec.error()) ==
        "spec.template.spec: Invalid value: 3: must be of type object, found integer");
}

TEST_CASE("paths in a part start with the path that the caller passes") {
  const auto spec =
      read_jobset_spec(json(R"({"replicatedJobs":[{"name":"a","template":{},"replicas":"1"}]})"),
                       "spec.template.spec");
  REQUIRE_FALSE(spec);
  CHECK(
      kube::to_string(spec.error()) ==
      R"(spec.template.spec.replicatedJobs[0].replicas: Invalid value: "1": must be of type integer, found string)");
}

TEST_CASE("null counts as absent and a whole number may be written with a point") {
  const auto job = read_trainjob(json(
      R"({"spec":{"trainer":{"numNodes":2.0,"image":null,"command":null},"initializer":null}})"));
  REQUIRE(job);
  CHECK(job->spec.trainer->numNodes == 2);
  CHECK_FALSE(job->spec.trainer->image);
  CHECK_FALSE(job->spec.trainer->command);
  CHECK_FALSE(job->spec.initializer);
  CHECK(job->spec.trainer->unknown.is_null());
}

TEST_CASE("an object that is there but empty stays there") {
  const auto runtime = read_runtime(json(R"({"spec":{"mlPolicy":{"torch":{},"jax":{}}}})"));
  REQUIRE(runtime);
  CHECK(runtime->spec.mlPolicy->torch);
  CHECK(runtime->spec.mlPolicy->jax);
  CHECK_FALSE(runtime->spec.mlPolicy->mpi);
  const auto jobset = read_jobset_spec(json(R"({"network":{},"replicatedJobs":[]})"), "spec");
  REQUIRE(jobset);
  CHECK(kube::print_json(write(*jobset)).find(R"("network":{})") != std::string::npos);
}

TEST_CASE("an empty command differs from none") {
  const auto job =
      read_trainjob(json(R"({"spec":{"runtimeRef":{"name":"r"},"trainer":{"command":[]}}})"));
  REQUIRE(job);
  REQUIRE(job->spec.trainer->command);
  CHECK(kube::print_json(write(job->spec)) ==
        R"({"runtimeRef":{"name":"r"},"trainer":{"command":[]}})");
}

TEST_CASE("the kind and the metadata of a runtime are read from the object") {
  const auto runtime = read_runtime(json(
      R"({"kind":"TrainingRuntime","metadata":{"name":"r","namespace":"n","labels":{"a":"b"}},"spec":{}})"));
  REQUIRE(runtime);
  CHECK(runtime->kind == "TrainingRuntime");
  CHECK(runtime->metadata.key() == kube::ObjectKey{"n", "r"});
  CHECK(runtime->metadata.labels.at("a") == "b");
}

TEST_CASE("members with names that C++ reserves keep their names on the wire") {
  const char* text =
      R"({"replicatedJobs":[{"name":"a","template":{"spec":{}}}],"successPolicy":{"operator":"All"}})";
  const auto spec = read_jobset_spec(json(text), "spec");
  REQUIRE(spec);
  CHECK(spec->successPolicy->operator_ == "All");
  CHECK(kube::print_json(write(*spec)) == text);
}

TEST_CASE("counters of a status are written also where they are zero") {
  TrainJobStatus status;
  CHECK(write(status) == kube::Json::object());
  status.jobsStatus.push_back({.name = "node", .active = 1});
  CHECK(
      kube::print_json(write(status)) ==
      R"({"jobsStatus":[{"active":1,"failed":0,"name":"node","ready":0,"succeeded":0,"suspended":0}]})");

  JobSetStatus jobset;
  CHECK(kube::print_json(write(jobset)) == R"({"restarts":0})");
  jobset.terminalState = "Completed";
  jobset.replicatedJobsStatus.push_back({.name = "a"});
  CHECK(
      kube::print_json(write(jobset)) ==
      R"({"replicatedJobsStatus":[{"active":0,"failed":0,"name":"a","ready":0,"succeeded":0,"suspended":0}],)"
      R"("restarts":0,"terminalState":"Completed"})");
}

TEST_CASE("what the status adds to upstream's is left out while it is empty") {
  TrainJobStatus status;
  status.phase = "Running";
  status.nodes = NodesStatus{.total = 3, .ready = 2};
  CHECK(kube::print_json(write(status)) ==
        R"({"nodes":{"ready":2,"summary":"2/3","total":3},"phase":"Running","restarts":0})");
}

TEST_CASE("the summary of nodes is made from its numbers, not from the stored text") {
  const auto job = read_trainjob(
      json(R"({"status":{"phase":"Running","nodes":{"total":4,"ready":4,"summary":"1/4"}}})"));
  REQUIRE(job);
  CHECK(job->status.nodes->unknown.is_null());
  CHECK(write(job->status).find_path({"nodes", "summary"})->as_string() == "4/4");
}

}  // namespace
}  // namespace trainer
