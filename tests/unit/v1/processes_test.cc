// Whatever numbers a user of V1 jobs writes, the numbers of processes that pods read are positive
// and fit 32 bits; a new job that asks for others is refused.
#include <fmt/format.h>

#include <limits>
#include <regex>

#include "kube/model/text.hh"
#include "runtimes/v1/validate.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

constexpr const char* kValues[] = {"0",
                                   "-1",
                                   "4",
                                   "2147483647",
                                   "2147483648",
                                   "9223372036854775807",
                                   "1e30",
                                   "4194304",
                                   "4194305",
                                   "'0'",
                                   "'-1'",
                                   "'2147483647'",
                                   "'9223372036854775807'",
                                   "'-9223372036854775808'",
                                   "'99999999999999999999'",
                                   "'-99999999999999999999'",
                                   "' 4'",
                                   "'4 '",
                                   "3000000",
                                   "'3000000'"};

struct Field {
  const char* kind;
  const char* roles;
  const char* more;  // V is the value
};
constexpr Field kFields[] = {
    {"PyTorchJob", "Master Worker*3", "{nprocPerNode: V}"},
    {"PyTorchJob", "Master Worker*999", "{nprocPerNode: V}"},
    {"PyTorchJob", "Worker*3", "{nprocPerNode: V}"},
    {"PyTorchJob", "Worker*3", "{elasticPolicy: {nProcPerNode: V}}"},
    {"PyTorchJob", "Worker*3", "{elasticPolicy: {minReplicas: V}}"},
    {"PyTorchJob", "Worker*3", "{elasticPolicy: {maxReplicas: V}}"},
    {"PyTorchJob", "Worker*3",
     "{elasticPolicy: {minReplicas: V, maxReplicas: V, nProcPerNode: V}}"},
    {"PyTorchJob", "Worker*3", "{nprocPerNode: '3000000', elasticPolicy: {maxReplicas: V}}"},
    {"PyTorchJob", "Master Worker", "{nprocPerNode: '2', roles: {Worker: {replicas: V}}}"},
    {"MPIJob", "Launcher Worker*3", "{slotsPerWorker: V}"},
    {"MPIJob", "Launcher Worker*999", "{slotsPerWorker: V}"},
    {"MPIJob", "Launcher Worker", "{slotsPerWorker: 2, roles: {Worker: {replicas: V}}}"},
    {"JAXJob", "Worker", "{roles: {Worker: {replicas: V}}}"},
    {"PaddleJob", "Master Worker", "{roles: {Worker: {replicas: V}}}"},
    {"XGBoostJob", "Master Worker", "{roles: {Worker: {replicas: V}}}"},
};

bool is_count(std::string_view text) {
  const auto number = kube::parse_number<std::int64_t>(text);
  return number && *number >= 1 && *number <= std::numeric_limits<std::int32_t>::max() &&
         std::to_string(*number) == text;
}

bool is_word(std::string_view text) {
  return text == "auto" || text == "cpu" || text == "gpu" || text == "xpu";
}

void check_counts(std::string_view name, std::string_view value) {
  INFO(name << "=" << value);
  if (name == "PET_NNODES" && value.find(':') != value.npos) {
    CHECK(is_count(value.substr(0, value.find(':'))));
    CHECK(is_count(value.substr(value.find(':') + 1)));
  } else if (name == "PET_NNODES" || name == "WORLD_SIZE" || name == "NUM_PROCESSES" ||
             name == "PADDLE_NNODES") {
    CHECK(is_count(value));
  } else if (name == "PET_NPROC_PER_NODE") {
    CHECK((is_count(value) || is_word(value)));
  } else if (name == "hostfile") {
    static const std::regex kSlots(" slots=(\\S+)");
    const std::string text(value);
    for (std::sregex_iterator at(text.begin(), text.end(), kSlots), end; at != end; ++at)
      CHECK(is_count((*at)[1].str()));
  }
}

std::vector<std::string> errors_of(const Verdict& verdict) {
  std::vector<std::string> texts;
  for (const kube::FieldError& error : verdict.errors) texts.push_back(error.to_string());
  return texts;
}

std::string with(std::string text, std::string_view value) {
  for (auto at = text.find('V'); at != text.npos; at = text.find('V', at + value.size()))
    if (text.substr(at, 1) == "V") text.replace(at, 1, value);
  return text;
}

}  // namespace

TEST_CASE("each number of processes of a V1 job is positive and fits 32 bits, or is refused") {
  int made = 0;
  int refused = 0;
  for (const Field& field : kFields)
    for (const char* value : kValues) {
      INFO(field.kind << " " << field.roles << " " << field.more << " " << value);
      const Framework& framework = framework_of(field.kind);
      const Json object = make_job(field.kind, field.roles, with(field.more, value));
      const auto job = read_job(object, framework.replica_specs);
      if (!job) continue;  // the schema refuses it
      const Verdict verdict = validate_create(framework, *job);
      refused += !verdict.errors.empty();
      // A job that was stored before is built though it would be refused now.
      for (const Json& child : all_children(framework, *job, {})) {
        ++made;
        for (const Json& container : child.get("spec").get_array("containers"))
          for (const Json& variable : container.get_array("env"))
            check_counts(variable.get_string("name"), variable.get_string("value"));
        for (const auto& [file, text] : child.get_object("data"))
          check_counts(file, text.as_string());
      }
    }
  CHECK(made > 100);
  CHECK(refused > 50);
}

TEST_CASE("numbers of processes that no machine runs are refused of new V1 jobs only") {
  struct Row {
    const char* kind;
    const char* roles;
    const char* more;
    std::vector<std::string> errors;
  };
  const Row row = GENERATE(
      Row{"PyTorchJob",
          "Master",
          "nprocPerNode: '99999999999999999999'",
          {"spec.nprocPerNode: Invalid value: \"99999999999999999999\": a node runs 1 to 4194304 "
           "processes, and not more: ask for a number in between"}},
      Row{"PyTorchJob",
          "Master",
          "nprocPerNode: '0'",
          {"spec.nprocPerNode: Invalid value: \"0\": a node runs 1 to 4194304 processes, and not "
           "0: "
           "ask for a number in between"}},
      Row{"PyTorchJob",
          "Master Worker*999",
          "nprocPerNode: '3000000'",
          {"spec.nprocPerNode: Invalid value: \"3000000\": 1000 nodes with 3000000 processes each "
           "are 3000000000 processes, and a training has 2147483647 at most: ask for fewer"}},
      Row{"PyTorchJob",
          "Worker*2",
          "elasticPolicy: {minReplicas: 0, maxReplicas: -1}",
          {"spec.elasticPolicy.minReplicas: Invalid value: 0: torchrun takes 1 or more: write such "
           "a number, or leave it out",
           "spec.elasticPolicy.maxReplicas: Invalid value: -1: torchrun takes 1 or more: write "
           "such "
           "a number, or leave it out"}},
      Row{"MPIJob",
          "Launcher Worker*2",
          "slotsPerWorker: -1",
          {"spec.slotsPerWorker: Invalid value: -1: a node runs 1 to 4194304 processes, and not "
           "-1: ask for a number in between"}},
      Row{"PyTorchJob", "Master", "nprocPerNode: ' 4'", {}},
      Row{"PyTorchJob", "Master", "nprocPerNode: '4194304'", {}});
  INFO(row.more);
  const Framework& framework = framework_of(row.kind);
  const V1Job job = read(make_job(row.kind, row.roles, row.more));
  CHECK(errors_of(validate_create(framework, job)) == row.errors);
  CHECK(errors_of(validate_stored(framework, job, {})).empty());
  CHECK(errors_of(validate_update(framework, job, job)).empty());
}

TEST_CASE("a warning says what is wrong with nprocPerNode, and what counts instead") {
  struct Row {
    const char* text;
    std::string warning;
    const char* processes;  // PET_NPROC_PER_NODE
    const char* world;      // WORLD_SIZE, of two pods
  };
  const auto padded = [](const char* text) {
    return fmt::format(
        "spec.nprocPerNode: \"{}\" has white space around the number, and 4 is used instead; write "
        "\"4\"",
        text);
  };
  const auto no_number = [](const char* text) {
    return fmt::format(
        "spec.nprocPerNode: \"{}\" is no number and no word that torchrun knows, so torchrun ends "
        "with an error, and WORLD_SIZE counts one process a pod; write auto, cpu, gpu, xpu or a "
        "number",
        text);
  };
  const Row row = GENERATE_COPY(
      Row{" 4", padded(" 4"), "4", "8"}, Row{"4 ", padded("4 "), "4", "8"}, Row{"4", "", "4", "8"},
      Row{"+4", "", "+4", "8"}, Row{"gpu", "", "gpu", "2"},
      Row{"four", no_number("four"), "four", "2"}, Row{"", no_number(""), "", "2"},
      Row{"4.5", no_number("4.5"), "4.5", "2"}, Row{" auto", no_number(" auto"), " auto", "2"});
  Json object = make_job("PyTorchJob", "Master Worker");
  object["spec"].set("nprocPerNode", row.text);
  const Framework& framework = framework_of("PyTorchJob");
  std::vector<std::string> about;
  for (const std::string& warning : warnings_of(framework, read(object)))
    if (warning.starts_with("spec.nprocPerNode")) about.push_back(warning);
  CHECK(about == (row.warning.empty() ? std::vector<std::string>() : std::vector{row.warning}));
  const World world(object);
  CHECK(world.env("p-master-0", "PET_NPROC_PER_NODE") == row.processes);
  CHECK(world.env("p-master-0", "WORLD_SIZE") == row.world);
}
