// Properties that hold for every document, tried on random ones. A failure prints its seed.
#include "api/api.hh"
#include "api/describe/runtime.hh"
#include "api/describe/writer.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"
#include "tests/unit/api/random_documents.hh"

namespace trainer {
namespace {

using kube::Json;

// Adds members that are always written, and those that are made from other members.
void add_written(Json& status, bool is_trainjob) {
  if (!is_trainjob && status.find("restarts") == nullptr) status.set("restarts", 0);
  if (is_trainjob && status.find("phase") != nullptr && status.find("restarts") == nullptr)
    status.set("restarts", 0);
  if (Json* nodes = status.find("nodes"))
    nodes->set("summary", std::to_string(nodes->get_int("ready")) + "/" +
                              std::to_string(nodes->get_int("total")));
}

TEST_CASE("every member survives reading and writing, known or unknown, at every level") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    test::RandomDocuments documents(seed);

    Json object = documents.object("TrainJob");
    object.set("spec", object.find("spec") == nullptr
                           ? Json::object({{"runtimeRef", Json::object({{"name", "r"}})}})
                           : *object.find("spec"));
    const auto job = read_trainjob(object);
    REQUIRE(job);
    CHECK(kube::print_json(write(job->spec)) == kube::print_json(*object.find("spec")));
    if (Json* status = object.find("status")) {
      add_written(*status, true);
      CHECK(kube::print_json(write(job->status)) == kube::print_json(*status));
    }

    Json runtime = documents.object("ClusterTrainingRuntime");
    if (const Json* spec = runtime.find("spec")) {
      const auto read = read_runtime(runtime);
      REQUIRE(read);
      CHECK(kube::print_json(wire::to_json(read->spec)) == kube::print_json(*spec));
    }

    Json jobset = documents.object("JobSet");
    const auto read = read_jobset(jobset);
    REQUIRE(read);
    if (const Json* spec = jobset.find("spec"))
      CHECK(kube::print_json(write(read->spec)) == kube::print_json(*spec));
    if (Json* status = jobset.find("status")) {
      add_written(*status, false);
      CHECK(kube::print_json(write(read->status)) == kube::print_json(*status));
    }
  }
}

// This puts a list in the place of a time: the API server accepts it, since it skips the type of a
// string that has a format.
bool passes_schema(const kube::FieldError& error) {
  return error.value.is_array() && (error.path.ends_with("Time") || error.path.ends_with(".time"));
}

template <class Read>
void check_corrupted(test::RandomDocuments& documents, std::string_view kind, Read read,
                     int& refused) {
  Json object = documents.object(kind);
  documents.corrupt(object);
  object.set("kind", kind);
  const auto result = read(object);
  const kube::FieldErrors found = check_schema(object);
  if (result) return;
  ++refused;
  INFO(kube::to_string(result.error()) << "\n" << kube::print_json(object));
  for (const kube::FieldError& error : result.error()) {
    const bool is_refused =
        std::any_of(found.begin(), found.end(),
                    [&](const kube::FieldError& other) { return other.path == error.path; });
    CHECK(is_refused != passes_schema(error));
  }
}

TEST_CASE("what cannot be read, the schema refuses at the same path") {
  int refused = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    test::RandomDocuments documents(seed);
    check_corrupted(documents, "TrainJob", read_trainjob, refused);
    check_corrupted(documents, "TrainingRuntime", read_runtime, refused);
    check_corrupted(documents, "JobSet", read_jobset, refused);
  }
  CHECK(refused > 300);  // enough documents must be refused for the test to mean something
}

TEST_CASE("filling in defaults twice changes nothing more, and adds nothing the schema refuses") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    test::RandomDocuments documents(seed);
    for (const char* kind : {"TrainJob", "TrainingRuntime", "JobSet"}) {
      Json object = documents.object(kind);
      const std::size_t refusals = check_schema(object).size();
      apply_schema_defaults(object);
      const Json once = object;
      apply_schema_defaults(object);
      CHECK(object == once);
      CHECK(check_schema(object).size() <= refusals);
    }
  }
}

}  // namespace
}  // namespace trainer
