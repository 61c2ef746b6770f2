#include "controller/cli/common_flags.hh"

#include <CLI/CLI.hpp>
#include <cstdint>

#include "controller/config/values.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

template <class Number>
CLI::Validator check_count() {
  return check_by(
      [](const std::string& text) { return kube::parse_number<Number>(text).value_or(-1) >= 0; },
      "is too large or no whole number: write 0 or more");
}

}  // namespace

void add_output(CLI::App& app, OutputFormat& output, const std::vector<std::string>& formats) {
  const auto set = [&output](const std::string& text) {
    output = text == "json"   ? OutputFormat::kJson
             : text == "yaml" ? OutputFormat::kYaml
                              : OutputFormat::kText;
  };
  app.add_option_function<std::string>("-o,--output", set, "Output format")
      ->check(CLI::IsMember(formats));
}

void add_files(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("-f,--filename,FILE", files, "YAML or JSON files; - is standard input")
      ->type_name("FILE")
      ->required();
}

void add_target(CLI::App& app, std::vector<std::string>& target) {
  const auto add = [&target](const std::string& word) { target.push_back(word); };
  app.add_option_function<std::string>("JOB", add, "Name of the TrainJob; or KIND/NAME, or a KIND")
      ->required();
  app.add_option_function<std::string>("NAME", add, "Name of an object of this KIND");
}

void add_cluster(CLI::App& app, ClusterOptions& cluster) {
  app.add_option("--kubeconfig", cluster.kubeconfig,
                 "Path of a kubeconfig; default: $KUBECONFIG, ~/.kube/config")
      ->type_name("FILE");
  app.add_option("--context", cluster.context,
                 "Context of the kubeconfig; default: the current one");
  app.add_option("-n,--namespace", cluster.ns, "Namespace; default: the context's");
}

void add_logs_flags(CLI::App& command, LogsOptions& logs) {
  add_target(command, logs.target);
  command.add_flag("-f,--follow", logs.is_followed,
                   "Wait for the start, follow restarts, end with the job");
  command
      .add_option("--node", logs.node,
                  "Only this training node; where a JobSet has several Jobs, only this Job")
      ->check(check_count<std::int32_t>());
  command.add_option("--tail", logs.tail, "Only the last lines of each pod; default: all")
      ->check(check_count<std::int64_t>());
  command.add_option("--since", logs.since, "Only lines younger than this, such as 30s or 2h")
      ->check(check_by(parse_duration, "is no duration: write 30s, 15m or 2h"));
  command.add_flag("--timestamps", logs.has_timestamps, "Print each line's time");
}

void add_ui_flags(CLI::App& command, UiOptions& ui) {
  command.add_flag("-A,--all-namespaces", ui.has_all_namespaces, "Show jobs of all namespaces");
  command.add_option("--port", ui.port, "Port on 127.0.0.1; 0: any free one")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
}

}  // namespace trainer
