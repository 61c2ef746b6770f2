#include <fmt/format.h>

#include <map>
#include <random>

#include "kube/model/exec_limits.hh"
#include "kube/model/expansion.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/catch.hh"

using namespace kube;

namespace {

constexpr auto kMost = static_cast<std::int64_t>(kMaxExecStringBytes);

Json spec_of(const std::string& container) {
  return *parse_yaml("{containers: [{name: side}, " + container + "]}");
}

// "args[0] 131073", in order.
std::vector<std::string> found_in(const Json& spec) {
  std::vector<std::string> texts;
  for (const LongExecString& one : find_long_exec_strings(spec, 100))
    texts.push_back(fmt::format("{} {}", one.path(), one.bytes));
  return texts;
}

// Returns what the kubelet makes of a text, by the kubelet's rules.
std::string expand(std::string_view text, const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || at + 1 == text.size()) {
      out += text[at];
    } else if (text[at + 1] == '$') {
      out += '$';
      ++at;
    } else if (text[at + 1] == '(' && text.find(')', at) != text.npos) {
      const std::size_t end = text.find(')', at);
      const std::string name(text.substr(at + 2, end - at - 2));
      const auto known = variables.find(name);
      out += known == variables.end() ? "$(" + name + ")" : known->second;
      at = end;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

TEST_CASE("words of commands, probes and hooks, and variables, have a limit", "[exec]") {
  const std::string most(kMaxExecStringBytes - 1, 'x');
  const char* const places[] = {"command: [a, X]",
                                "args: [a, b, X]",
                                "startupProbe: {exec: {command: [X]}}",
                                "readinessProbe: {exec: {command: [X]}}",
                                "livenessProbe: {exec: {command: [a, X]}}",
                                "lifecycle: {postStart: {exec: {command: [X]}}}",
                                "lifecycle: {preStop: {exec: {command: [a, X]}}}"};
  const char* const paths[] = {"command[1]",
                               "args[2]",
                               "startupProbe.exec.command[0]",
                               "readinessProbe.exec.command[0]",
                               "livenessProbe.exec.command[1]",
                               "lifecycle.postStart.exec.command[0]",
                               "lifecycle.preStop.exec.command[1]"};
  for (std::size_t i = 0; i < std::size(places); ++i) {
    std::string place = places[i];
    INFO(place);
    const std::size_t at = place.find('X');
    CHECK(found_in(spec_of("{name: c, " + std::string(place).replace(at, 1, most) + "}")).empty());
    CHECK(found_in(spec_of("{name: c, " + place.replace(at, 1, most + "x") + "}")) ==
          std::vector{fmt::format("{} {}", paths[i], kMost + 1)});
  }
  CHECK(found_in(spec_of("{name: c, env: [{name: A}, {name: NAME, value: " + most.substr(4) +
                         "}]}")) == std::vector<std::string>{"env[1].value 131073"});
  CHECK(found_in(spec_of("{name: c, env: [{name: NAME, value: " + most.substr(5) + "}]}")).empty());
}

TEST_CASE("references count as what the kubelet replaces them by", "[exec]") {
  const std::string half(kMaxExecStringBytes / 2, 'x');
  const std::string env = "env: [{name: A, value: " + half +
                          "}, {name: S, valueFrom: {fieldRef: "
                          "{fieldPath: metadata.name}}}]";
  struct Row {
    const char* container;
    std::vector<std::string> found;
  };
  for (const Row& row :
       std::vector<Row>{{"args: ['$(A)$(A)']", {"args[0] 131073"}},
                        {"args: ['$(A)']", {}},
                        {"args: ['$$(A)$(A)', '$(A)$(NONE)$(S)']", {}},
                        {"command: ['$(A)-$(A)']", {"command[0] 131074"}},
                        {"livenessProbe: {exec: {command: ['$(A)$(A)']}}",
                         {"livenessProbe.exec.command[0] 131073"}},
                        // The kubelet replaces nothing in these.
                        {"lifecycle: {preStop: {exec: {command: ['$(A)$(A)']}}}", {}}}) {
    INFO(row.container);
    CHECK(found_in(spec_of("{name: c, " + env + ", " + row.container + "}")) == row.found);
  }
}

TEST_CASE("variables that double 100 times are measured, and not built", "[exec]") {
  std::string env = "{name: V0, value: xxxxxxxx}";
  for (int i = 1; i <= 100; ++i)
    env += fmt::format(", {{name: V{}, value: '$(V{})$(V{})'}}", i, i - 1, i - 1);
  const Json spec = spec_of("{name: c, env: [" + env + "], args: ['$(V100)', '$(V5)']}");
  const auto found = find_long_exec_strings(spec, 1'000);
  REQUIRE(found.size() > 80);
  CHECK(found.back().path() == "args[0]");
  CHECK(found.back().bytes == std::numeric_limits<std::int64_t>::max());
  CHECK(found.back().is_expanded);
  CHECK(find_long_exec_strings(spec, 3).size() == 3);
}

TEST_CASE("a megabyte of beginnings of references is read in linear time", "[exec]") {
  std::string text;
  while (text.size() < (1U << 20U)) text += "$(";
  const Json container =
      Json::object({{"name", "c"}, {"args", Json::array({text, text + ")", "$$" + text})}});
  const auto found =
      find_long_exec_strings(Json::object({{"containers", Json::array({container})}}), 10);
  REQUIRE(found.size() == 3);
  CHECK(found[0].bytes == static_cast<std::int64_t>(text.size() + 1));
}

TEST_CASE("the error says what is too long, and the way out", "[exec]") {
  const Json spec = spec_of("{name: c, lifecycle: {preStop: {exec: {command: [a, " +
                            std::string(kMaxExecStringBytes, 'x') + "]}}}}");
  const auto found = find_long_exec_strings(spec, 10);
  REQUIRE(found.size() == 1);
  CHECK(found[0].text("container c", "") ==
        "word 2 of the command of lifecycle.preStop of container c has 131073 bytes, and Linux "
        "starts no process with more than 131072 in one: bring the content in a file of the image, "
        "a ConfigMap or another volume, or shorten it");
}

TEST_CASE("random texts have the length that the kubelet's expansion has", "[exec]") {
  std::mt19937 random(7);
  const char* const pieces[] = {"$", "$$", "$(", ")", "$(A)", "$(B)", "$(X)", "(", "x", "A"};
  const auto draw = [&] {
    std::string text;
    for (std::size_t i = random() % 8; i > 0; --i) text += pieces[random() % std::size(pieces)];
    return text;
  };
  // Long enough that each word is found.
  const std::string filler(kMaxExecStringBytes, 'f');
  for (int run = 0; run < 300; ++run) {
    std::map<std::string, std::string> known;
    Json env = Json::array();
    for (const char* name : {"A", "B", "A"}) {
      const std::string value = draw();
      env.push_back(Json::object({{"name", name}, {"value", value}}));
      known[name] = expand(value, known);
    }
    const std::string word = draw() + filler;
    Json container = Json::object({{"name", "c"}, {"env", env}, {"args", Json::array({word})}});
    const Json spec = Json::object({{"containers", Json::array({container})}});
    const auto found = find_long_exec_strings(spec, 10);
    INFO(word.substr(0, word.size() - filler.size()));
    REQUIRE(found.size() == 1);
    CHECK(found[0].bytes == static_cast<std::int64_t>(expand(word, known).size() + 1));
  }
}
