// These tests check which variables of an MPI job reach the ranks on other nodes.
#include <fmt/format.h>

#include <map>
#include <random>

#include "kube/model/pod_template.hh"
#include "kube/tests/merge_patch.hh"
#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kList = "OMPI_MCA_mca_base_env_list";

Runtime runtime_with_launcher(const std::string& policy, const std::string& launcher = "{}") {
  Runtime out = mpi_runtime("mlPolicy: {mpi: {" + policy + "}}");
  kube::Json& pod = out.spec.template_->spec->replicatedJobs[1].template_["spec"]["template"];
  kube::Json& container = *kube::find_container(pod, "node");
  container = kube::test::merge_patch(container, yaml(launcher));
  return out;
}

std::string list_of(const std::string& trainer,
                    const Runtime& runtime = runtime_with_launcher("")) {
  return env_value(container_in(built(job_with("trainer: " + trainer), runtime), "launcher"),
                   kList);
}

std::vector<std::string> warnings_about_env(const std::string& trainer,
                                            const Runtime& runtime = runtime_with_launcher("")) {
  std::vector<std::string> out;
  for (std::string& warning : warn_trainjob(job_with("trainer: " + trainer), runtime))
    if (warning.starts_with("spec.trainer.env: ")) out.push_back(std::move(warning));
  return out;
}

TEST_CASE("OpenMPI gets the names of the job's variables", "[mpi]") {
  struct Row {
    const char* env;
    const char* list;
  };
  const Row rows[] = {
      {"[{name: A, value: '1'}, {name: B, value: two words}]", "A;B"},
      {"[{name: A, value: ''}]", "A"},
      {"[{name: A, value: 'x;y'}]", "A"},
      {"[{name: A, value: '--flag=1'}]", "A=$(A)"},
      {"[{name: A, value: '$(B)'}]", "A=$(A)"},
      {"[{name: A, value: 'x=1;y=2'}, {name: B}]", "B"},
      {"[{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]", "A=$(A)"},
      {"[{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]", "A=$(A)"},
      {"[{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]", ""},
      {"[{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]", ""},
      {"[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]", "A=$(A)"},
      {"[{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]", ""},
      // OpenMPI passes on its own by itself.
      {"[{name: OMPI_MCA_btl, value: tcp}, {name: B}]", "B"},
      {"[{name: PATH, value: /opt/bin}]", "PATH"},
      {"[]", ""},
  };
  for (const Row& row : rows) {
    INFO(row.env);
    CHECK(list_of(fmt::format("{{command: [mpirun, x], env: {}}}", row.env)) == row.list);
  }
}

TEST_CASE("variables of the runtime reach the ranks where the launcher is one of the nodes",
          "[mpi]") {
  const std::string own = "{command: [mpirun, x], env: [{name: HOME, value: /home/me}]}";
  CHECK(list_of("{env: [{name: A, value: '1'}]}",
                runtime_with_launcher("runLauncherAsNode: true", own)) == "HOME;A");
  CHECK(list_of("{}", runtime_with_launcher("runLauncherAsNode: true", own)) == "HOME");
  // A launcher that only launches may have variables that are for itself.
  CHECK(list_of("{env: [{name: A, value: '1'}]}",
                runtime_with_launcher("runLauncherAsNode: false", own)) == "A");
  CHECK(list_of("{env: [{name: HOME, value: /here}]}",
                runtime_with_launcher("runLauncherAsNode: false", own)) == "HOME");
}

TEST_CASE("a list is passed where mpirun is in sight and says nothing itself", "[mpi]") {
  struct Row {
    const char* command;
    bool is_passed;
    const char* warning;  // a part of it; nullptr: none
  };
  const Row rows[] = {
      {"command: [mpirun, -n, '2', ./app]", true, nullptr},
      {"command: [/opt/bin/mpiexec, ./app]", true, nullptr},
      {"args: [mpirun, ./app]", true, nullptr},
      {"command: [bash, -c, 'set -ex; cd /work && mpirun ./app']", true, nullptr},
      {"command: [bash, -c], args: [\"set -x\\nmpirun ./app -x 3\"]", true, nullptr},
      {"command: [env, X=y, timeout, '9', mpirun, ./app]", true, nullptr},
      {"command: [mpirun, -x, B, ./app]", false, "A: not passed"},
      {"command: [mpirun, -x, A=2, ./app]", false, nullptr},
      {"command: [sh, -c, 'mpirun -x A -x \"B=1\" ./app']", false, nullptr},
      {"command: [mpirun, --mca, mca_base_env_list, B, ./app]", false, "add -x NAME"},
      {"command: [mpirun, -tune, f, ./app]", false, "add -x NAME"},
      {"command: [./train.sh]", false, "out of sight"},
      {"command: [bash, train.sh]", false, "out of sight"},
      {"command: [horovodrun, mpirun]", false, "out of sight"},
      {"command: [/opt/mpirun_wrapper.sh]", false, "out of sight"},
      {"command: [bash, mpirun.sh]", false, "out of sight"},
      {"command: [bash, run.sh, mpirun]", false, "out of sight"},
      {"command: [bash, -c, './mpirun.sh # mpirun']", false, "out of sight"},
      {"command: [mpirun.openmpi, ./app]", true, nullptr},
      {"command: [mpirun, python, t.py, --tune, -x, B]", true, nullptr},
      {"command: [mpirun, --allow-run-as-root, ./app, -x, B]", true, nullptr},
      {"command: [bash, -eo, pipefail, -c, 'if true; then mpirun -np $N ./app; fi']", true,
       nullptr},
      {"command: [sh, -c, 'mpirun $OPTIONS ./app']", false, "out of sight"},
      {"command: [sh, -c, 'mpirun \"$@\"', _, ./app]", false, "out of sight"},
      {"command: [mpirun, -x, 'B=x y', -x, A, ./app]", false, nullptr},
      {"command: [mpirun, ./app, ':', -x, A, ./app]", false, nullptr},
      {"numNodes: 2", false, "out of sight"},  // the image's own command
      {"command: [mpirun], env: [{name: OMPI_MCA_mca_base_env_list, value: 'A;Z=1'}]", false,
       nullptr},
  };
  for (const Row& row : rows) {
    INFO(row.command);
    std::string trainer(row.command);
    if (trainer.find("env: ") == trainer.npos) trainer += ", env: [{name: A, value: '1'}]";
    const std::string list = list_of("{" + trainer + "}");
    CHECK((list == "A") == row.is_passed);
    const auto warnings = warnings_about_env("{" + trainer + "}");
    REQUIRE(warnings.size() == (row.warning ? 1U : 0U));
    if (row.warning) CHECK_THAT(warnings[0], kube::test::contains(row.warning));
  }
  CHECK(list_of("{command: [mpirun], env: [{name: OMPI_MCA_mca_base_env_list, value: 'A;Z=1'}]}") ==
        "A;Z=1");  // the job's own
}

TEST_CASE("Hydra passes on everything, and is asked to where there is something", "[mpi]") {
  struct Row {
    const char* implementation;
    const char* variable;
  };
  for (const Row& row : {Row{"Intel", "I_MPI_HYDRA_ENV"}, Row{"MPICH", "HYDRA_ENV"}}) {
    INFO(row.implementation);
    const Runtime runtime =
        runtime_with_launcher("mpiImplementation: " + std::string(row.implementation));
    const auto value = [&](const std::string& env) {
      return env_value(
          container_in(built(job_with("trainer: {command: [./run.sh], env: " + env + "}"), runtime),
                       "launcher"),
          row.variable);
    };
    CHECK(value("[{name: A, value: 'x=1;y'}]") == "all");
    CHECK(value("[]").empty());
    CHECK(value(fmt::format("[{{name: A}}, {{name: {}, value: none}}]", row.variable)) == "none");
    CHECK(warnings_about_env("{command: [./run.sh], env: [{name: A, value: 'x=1;y'}]}", runtime)
              .empty());
  }
}

TEST_CASE("a JobSet that was made without the list keeps its environment", "[mpi]") {
  const TrainJob job = job_with("trainer: {command: [mpirun], env: [{name: A, value: '1'}]}");
  const Runtime runtime = runtime_with_launcher("");
  const Built fresh = built(job, runtime);
  REQUIRE(env_value(container_in(fresh, "launcher"), kList) == "A");
  const auto again = [&](const kube::Json& stored) {
    return trainer::build(job, runtime, production(), nullptr, &stored).value();
  };
  CHECK(again(fresh.jobset).jobset == fresh.jobset);
  Built earlier = fresh;
  kube::Json& launcher = const_cast<kube::Json&>(container_in(earlier, "launcher"));
  auto& env = launcher["env"].as_array();
  std::erase_if(env, [](const kube::Json& one) { return one.get_string("name") == kList; });
  CHECK(again(earlier.jobset).jobset == earlier.jobset);
}

TEST_CASE("a list of variables is bounded", "[mpi]") {
  std::string env = "{name: LONG, value: '=" + std::string(40'000, 'v') + "'}, ";
  env += "{name: LONGER, value: '=" + std::string(40'000, 'v') + "'}, {name: A}";
  CHECK(list_of("{command: [mpirun], env: [" + env + "]}") == "LONG=$(LONG);A");
  const auto warnings = warnings_about_env("{command: [mpirun], env: [" + env + "]}");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("LONGER: not passed") != std::string::npos);
}

// ---- what the kubelet and OpenMPI make of it

// Expands like the kubelet (k8s.io/kubernetes/third_party/forked/golang/expansion).
std::string expand(std::string_view text, const Environment& known) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += text[i++];
    } else if (const std::size_t end = text.find(')', i); text[i + 1] == '(' && end != text.npos) {
      const std::string name(text.substr(i + 2, end - i - 2));
      const auto found = known.find(name);
      out += found == known.end() ? "$(" + name + ")" : found->second;
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The environment of a container; sources have the value that `secret` says.
Environment start(const kube::Json& container, const std::string& secret) {
  Environment out;
  for (const kube::Json& variable : container.get_array("env")) {
    const bool has_source = variable.find("valueFrom") != nullptr;
    out[std::string(variable.get_string("name"))] =
        has_source ? secret : expand(variable.get_string("value"), out);
  }
  return out;
}

// Returns the variables of a rank on another node, by the rules of OpenMPI 4 and 5
// (opal/mca/base/mca_base_var.c, process_env_list): a value with "=" is taken for NAME=VALUE.
Environment rank_of(const Environment& launcher) {
  Environment out;
  const auto found = launcher.find(kList);
  if (found == launcher.end()) return out;
  const std::string& list = found->second;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(';', at), list.size());
    std::string entry = list.substr(at, end - at);
    at = end + 1;
    if (entry.empty()) continue;
    if (entry.find('=') == entry.npos) {
      const std::string& value = launcher.at(entry);  // OpenMPI ends where there is none
      entry = value.find('=') == value.npos ? entry + "=" + value : value;
    }
    const std::size_t equals = entry.find('=');
    out[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return out;
}

TEST_CASE("each variable has the launcher's value in a rank of another node, or is warned about",
          "[mpi]") {
  std::mt19937 random(20261127);
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  static const std::vector<std::string> kParts = {"a", "=", ";", "$",  "$$", "$(A)", "$(B)",
                                                  "(", ")", " ", "\"", "'",  "\\",   "\n"};
  for (int run = 0; run < times(3000); ++run) {
    kube::Json::Array env;
    for (const char* name : {"A", "B", "C", "D"}) {
      if (below(4) == 0) {
        env.push_back(yaml(fmt::format(
            "{{name: {}, valueFrom: {{secretKeyRef: {{name: s, key: k, optional: {}}}}}}}", name,
            below(2) == 0)));
        continue;
      }
      std::string value;
      for (std::size_t n = below(5); n > 0; --n) value += kParts[below(kParts.size())];
      env.push_back(kube::Json::object({{"name", name}, {"value", value}}));
    }
    TrainJob job = job_with("trainer: {command: [mpirun]}");
    job.spec.trainer->env = std::vector<kube::Json>(env.begin(), env.end());
    const Runtime runtime = runtime_with_launcher(below(2) == 0 ? "runLauncherAsNode: true"
                                                                : "runLauncherAsNode: false");
    const Environment launcher = start(container_in(built(job, runtime), "launcher"), "c2VjcmV0==");
    const Environment rank = rank_of(launcher);
    std::string warned;
    for (const std::string& warning : warn_trainjob(job, runtime))
      if (warning.starts_with("spec.trainer.env: ")) warned = warning.substr(17);
    for (const auto& [name, value] : rank) {
      INFO(run << " " << name);
      REQUIRE(launcher.contains(name));
      CHECK(launcher.at(name) == value);
    }
    for (const char* name : {"A", "B", "C", "D"}) {
      INFO(run << " " << name << " in " << warned);
      const bool is_named = warned.find(fmt::format(" {}", name)) < warned.find(": not passed");
      CHECK(rank.contains(name) != is_named);
    }
  }
}

}  // namespace
}  // namespace trainer::test
