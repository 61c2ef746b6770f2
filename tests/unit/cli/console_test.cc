// No hidden character leaves a subcommand, wherever in an object or argument it is.
#include "controller/cli/console.hh"

#include <functional>
#include <random>
#include <sstream>

#include "controller/cli/commands.hh"
#include "controller/cli/terminal_text.hh"
#include "controller/kinds/registry.hh"
#include "kube/model/json_text.hh"
#include "kube/model/visible_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

constexpr const char* kHidden[] = {"\u202e", "\u202a", "\u2066", "\u2069", "\u3164",
                                   "\u200b", "\ufeff", "\u00ad", "\u009b", "\U000e0041"};

struct Streams {
  explicit Streams(const std::string& input = "") : in(input) {}

  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};

  void check() const {
    for (const std::string& text : {out.str(), err.str()}) CHECK(kube::visible_text(text) == text);
  }
};

const Json& objects() {
  static const Json kObjects = *kube::parse_yaml(R"([
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime,
 metadata: {name: rt, labels: {trainer.kubeflow.org/framework: torch, other: value}},
 spec: {mlPolicy: {numNodes: 2, torch: {}},
  template: {metadata: {annotations: {a: b}}, spec: {replicatedJobs: [{name: node, template: {
   metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
   spec: {template: {metadata: {annotations: {a: b}}, spec: {
    containers: [{name: node, image: i, command: [torchrun, t.py], workingDir: "/w",
     env: [{name: PET_NNODES, value: "7"}, {name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}],
     volumeMounts: [{name: v, mountPath: /v}]}, {name: side, image: s}],
    volumes: [{name: v, hostPath: {path: /v}}], nodeSelector: {a: b}}}}}}]}}}},
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob,
 metadata: {name: j, namespace: ns, labels: {a: b}, annotations: {a: "b"}},
 spec: {runtimeRef: {name: rt, kind: ClusterTrainingRuntime},
  runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {
   metadata: {annotations: {a: "b"}}, spec: {replicatedJobs: [{name: node, template: {spec: {
    template: {spec: {containers: [{name: side, env: [{name: B, value: "b"}]}]}}}}}]}}}}],
  trainer: {image: i, command: [python, t.py], args: ["a"], env: [{name: A, value: "a"}]}}},
{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p, namespace: ns},
 spec: {nprocPerNode: "auto", runPolicy: {cleanPodPolicy: All}, pytorchReplicaSpecs: {Master: {
  replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i,
   command: [python, t.py], env: [{name: WORLD_SIZE, value: "1"}]}]}}}}}},
{apiVersion: unknown/v1, kind: Other, metadata: {name: x}}])");
  return kObjects;
}

// Calls `visit` with each text of a value, and each name of a member.
void each_text(Json& value, const std::function<void(std::string&)>& visit) {
  if (value.is_string()) {
    std::string text = value.as_string();
    visit(text);
    value = text;
  } else if (value.is_array()) {
    for (Json& item : value.as_array()) each_text(item, visit);
  } else if (value.is_object()) {
    Json out = Json::object();
    for (auto& [name, member] : value.as_object()) {
      std::string key = name;
      visit(key);
      each_text(member, visit);
      out.set(key, std::move(member));
    }
    value = std::move(out);
  }
}

std::string text_of(const std::vector<Json>& documents) {
  return kube::print_json(Json(Json::Array(documents.begin(), documents.end())));
}

}  // namespace

TEST_CASE("each command shows what is hidden in any text of an object") {
  const Registry registry = full_registry();
  int places = 0;
  Json all = objects();
  each_text(all, [&places](std::string&) { ++places; });
  REQUIRE(places > 150);
  int jobsets = 0;
  for (int place = 0; place < places; ++place) {
    Json changed = objects();
    int at = 0;
    std::string before;
    each_text(changed, [&](std::string& text) {
      if (at++ != place) return;
      before = text;
      text.insert(text.size() / 2, kHidden[static_cast<std::size_t>(place) % std::size(kHidden)]);
    });
    CAPTURE(place, before);
    for (const OutputFormat format : {OutputFormat::kYaml, OutputFormat::kJson}) {
      std::string text;
      for (const Json& document : changed.as_array()) text += "---\n" + kube::print_yaml(document);
      Streams streams(text);
      RenderOptions options;
      options.files = {"-"};
      options.format = format;
      options.is_explained = true;
      run_render(options, registry, streams.console);
      streams.check();
      // Only what parses again is printed.
      const auto documents = kube::parse_yaml_documents(streams.out.str());
      REQUIRE(documents);
      if (text_of(*documents).find("\"JobSet\"") != std::string::npos) ++jobsets;
    }
  }
  // Otherwise a place would be tried only in refused objects.
  CHECK(jobsets > places / 3);
}

TEST_CASE("what is rendered has the values that were hidden from the eye") {
  for (const char* hidden : kHidden) {
    Json changed = objects();
    const std::string text = std::string("a") + hidden + "b";
    changed.as_array()[1]["spec"]["trainer"].set("args", Json::array({text, text + "\n\tc\n"}));
    std::string input;
    for (const Json& document : changed.as_array()) input += "---\n" + kube::print_yaml(document);
    for (const OutputFormat format : {OutputFormat::kYaml, OutputFormat::kJson}) {
      Streams streams(input);
      RenderOptions options;
      options.files = {"-"};
      options.format = format;
      run_render(options, full_registry(), streams.console);
      const auto documents = kube::parse_yaml_documents(streams.out.str());
      REQUIRE(documents);
      bool is_found = false;
      const std::function<void(const Json&)> look = [&](const Json& value) {
        if (value.is_object()) {
          const Json::Array& args = value.get_array("args");
          is_found = is_found || (args.size() == 2 && args[0] == Json(text) &&
                                  args[1] == Json(text + "\n\tc\n"));
          for (const auto& [name, member] : value.as_object()) look(member);
        } else if (value.is_array()) {
          for (const Json& item : value.as_array()) look(item);
        }
      };
      for (const Json& document : *documents) look(document);
      CHECK(is_found);
      streams.check();
    }
  }
}

TEST_CASE("arguments of commands are shown as they are") {
  for (const char* hidden : kHidden) {
    const std::string word = std::string("x") + hidden + "y";
    const auto check = [&](const std::function<int(Console&)>& run) {
      Streams streams;
      CHECK(run(streams.console) != kExitDone);
      CHECK_FALSE(streams.err.str().empty());
      streams.check();
    };
    check([&](Console& console) {
      RenderOptions options;
      options.files = {word};
      return run_render(options, full_registry(), console);
    });
    check([&](Console& console) {
      RenderOptions options;
      options.config_file = word;
      return run_render(options, full_registry(), console);
    });
    check([&](Console& console) {
      RuntimesOptions options;
      options.names = {word};
      return run_runtimes(options, console);
    });
    check([&](Console& console) {
      CrdsOptions options;
      options.installed = {word};
      return run_crds(options, console);
    });
    check([&](Console& console) { return run_rbac(word, console); });
    for (const auto& target : {std::vector<std::string>{word, word}, {word}}) {
      check([&](Console& console) {
        WhyOptions options;
        options.cluster.kubeconfig = word;
        options.target = target;
        return run_why(options, full_registry(), console);
      });
      check([&](Console& console) {
        LogsOptions options;
        options.cluster.kubeconfig = word;
        options.target = target;
        return run_logs(options, full_registry(), console);
      });
    }
    check([&](Console& console) {
      CheckOptions options;
      options.cluster.kubeconfig = word;
      return run_check(options, console);
    });
  }
}

TEST_CASE("a stream shows the same however its text is divided into writes") {
  std::mt19937 random(3);
  const std::string pieces[] = {
      "a",    "\x1b[31m", "m",          "\r",     "\n",   "\u202e",       "\xc2\x9b",        "\x9b",
      "\xe2", "\x80",     "\U000e0021", "\u4e2d", "\x07", "\xf0\x9f\x98", "\xf0\x9f\x98\x80"};
  for (int run = 0; run < 5'000; ++run) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += pieces[random() % std::size(pieces)];
    std::ostringstream out;
    {
      PrintableStream stream(out);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = 1 + random() % 5;
        stream << text.substr(at, size);
        at += size;
      }
      CHECK(stream.good());
    }
    CAPTURE(text);
    CHECK(kube::visible_text(out.str()) == out.str());
    // A colour that is divided is printed visibly, and one that is not is left out.
    if (text.find('\x1b') == text.npos) CHECK(out.str() == printable(text, TerminalText::kPlain));
  }
}

TEST_CASE("a stream fails as the one below it does") {
  std::ostringstream below;
  below.setstate(std::ios::badbit);
  PrintableStream stream(below);
  stream << "text";
  CHECK_FALSE(stream.good());
}
