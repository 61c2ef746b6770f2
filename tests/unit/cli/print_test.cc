#include <sstream>

#include "controller/cli/commands.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/yaml.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

struct Streams {
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};
};

}  // namespace

TEST_CASE("the CRDs are printed as documents that parse again") {
  Streams streams;
  CrdsOptions options;
  CHECK(run_crds(options, streams.console) == kExitDone);
  const auto documents = kube::parse_yaml_documents(streams.out.str());
  REQUIRE(documents);
  CHECK(documents->size() == 4);
  for (const auto& document : *documents)
    CHECK(document.get_string("kind") == "CustomResourceDefinition");
  Streams others;
  options.installed = {"v1"};
  CHECK(run_crds(options, others.console) == kExitDone);
  CHECK(kube::parse_yaml_documents(others.out.str())->size() == 6);
  options.installed = {"v3"};
  CHECK(run_crds(options, others.console) == kExitRefused);
  CHECK(others.err.str() == "option v3: no kind has this name: choose from mpi, v1\n");
  options = {};
  options.except = {"jobsets.jobset.x-k8s.io"};
  Streams without;
  CHECK(run_crds(options, without.console) == kExitDone);
  CHECK(kube::parse_yaml_documents(without.out.str())->size() == 3);
  CHECK(without.out.str().find("jobsets.jobset.x-k8s.io") == std::string::npos);
  options.except = {"jobsets"};
  CHECK(run_crds(options, without.console) == kExitRefused);
  CHECK(without.err.str().starts_with("--except jobsets: no CustomResourceDefinition"));
}

TEST_CASE(
    "the versions of MPIJob are in one CRD, and each is served where its option is installed") {
  const auto versions = [](std::vector<std::string> installed) {
    Streams streams;
    CrdsOptions options;
    options.installed = std::move(installed);
    REQUIRE(run_crds(options, streams.console) == kExitDone);
    std::string text;
    const auto documents = kube::parse_yaml_documents(streams.out.str());
    REQUIRE(documents);
    for (const auto& document : *documents) {
      if (document.get("metadata").get_string("name") != "mpijobs.kubeflow.org") continue;
      for (const auto& version : document.get("spec").get_array("versions"))
        text += fmt::format("{} served={} stored={} ", version.get_string("name"),
                            version.get_bool("served"), version.get_bool("storage"));
    }
    return text;
  };
  CHECK(versions({"v1"}) == "v1 served=true stored=true ");
  CHECK(versions({"mpi"}) == "v1 served=false stored=true v2beta1 served=true stored=false ");
  CHECK(versions({"mpi", "v1"}) == "v1 served=true stored=true v2beta1 served=true stored=false ");
}

TEST_CASE("built-in runtimes are printed whole, by name or as a list") {
  Streams all;
  CHECK(run_runtimes({}, all.console) == kExitDone);
  CHECK(*kube::parse_yaml_documents(all.out.str()) == builtin_runtimes());

  Streams one;
  RuntimesOptions chosen;
  chosen.names = {"torch-distributed"};
  CHECK(run_runtimes(chosen, one.console) == kExitDone);
  const auto document = kube::parse_yaml(one.out.str());
  REQUIRE(document);
  CHECK(kube::ObjectMeta::of(*document).name == "torch-distributed");

  Streams list;
  RuntimesOptions listed;
  listed.is_list = true;
  CHECK(run_runtimes(listed, list.console) == kExitDone);
  CHECK(list.out.str().find("torch-distributed                torch\n") != std::string::npos);

  Streams unknown;
  chosen.names = {"torch"};
  CHECK(run_runtimes(chosen, unknown.console) == kExitRefused);
  CHECK(unknown.out.str().empty());
  CHECK(unknown.err.str().starts_with(
      "blueprint torch: there is none of this name: choose from torch-distributed, "));
}

TEST_CASE("the version is a line for people and an object for programs") {
  Streams text;
  CHECK(run_version(OutputFormat::kText, text.console) == kExitDone);
  CHECK(text.out.str().starts_with("trainer "));
  Streams json;
  CHECK(run_version(OutputFormat::kJson, json.console) == kExitDone);
  const auto object = kube::parse_json(json.out.str());
  REQUIRE(object);
  CHECK_FALSE(object->get_string("version").empty());
}
