#include "kube/client/exec_plugin.hh"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>

#include "kube/client/argv.hh"
#include "kube/client/token_source.hh"
#include "kube/model/json_text.hh"

extern char** environ;

namespace kube {

namespace {

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";
constexpr std::string_view kV1Beta1 = "client.authentication.k8s.io/v1beta1";
constexpr std::size_t kMaxOutput = 1U << 20;

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::kInvalid, std::move(message));
}

std::vector<std::string> environment_with(const ExecConfig& config, const std::string& info) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto at = text.find('=');
    if (at != std::string_view::npos)
      variables[std::string(text.substr(0, at))] = text.substr(at + 1);
  }
  for (const auto& [name, value] : config.env) variables[name] = value;
  variables["KUBERNETES_EXEC_INFO"] = info;
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

// Starts the command with its output in `output`. The result is an errno, 0 for success.
int start(const ExecConfig& config, const std::string& info, bool is_interactive, int output,
          pid_t& child) {
  std::vector<std::string> words{config.command};
  words.insert(words.end(), config.args.begin(), config.args.end());
  std::vector<std::string> variables = environment_with(config, info);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!is_interactive)
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  const int error = posix_spawnp(&child, config.command.c_str(), &actions, nullptr,
                                 pointers_to(words).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

std::string with_hint(std::string text, const ExecConfig& config) {
  return config.install_hint.empty() ? text : text + "\n" + config.install_hint;
}

}  // namespace

Result<ExecConfig> read_exec_config(const Json& exec) {
  ExecConfig config;
  std::string mode;
  const std::pair<const char*, std::string*> texts[] = {{"apiVersion", &config.api_version},
                                                        {"command", &config.command},
                                                        {"installHint", &config.install_hint},
                                                        {"interactiveMode", &mode}};
  for (const auto& [field, target] : texts) {
    const Json& value = exec.get(field);
    if (!value.is_null() && !value.is_string())
      return invalid(std::string(field) + ": it is of type " + std::string(value.type_name()) +
                     ", not string");
    *target = exec.get_string(field);
  }
  if (config.api_version != kV1 && config.api_version != kV1Beta1) {
    return invalid("apiVersion: \"" + config.api_version + "\" is not supported: write " +
                   std::string(kV1) + " or " + std::string(kV1Beta1));
  }
  if (config.command.empty()) return invalid("command: is not set; name the program");
  if (mode.empty() && config.api_version == kV1Beta1) mode = "IfAvailable";
  if (mode != "Never" && mode != "Always" && mode != "IfAvailable")
    return invalid("interactiveMode: \"" + mode + "\": write Never, IfAvailable or Always");
  using enum ExecConfig::Interactive;
  config.interactive = mode == "Never" ? kNever : mode == "Always" ? kAlways : kIfAvailable;
  config.has_cluster_info = exec.get_bool("provideClusterInfo");
  for (const Json& arg : exec.get_array("args")) {
    if (!arg.is_string()) return invalid("args: write each one as a string, in quotes");
    config.args.push_back(arg.as_string());
  }
  for (const Json& variable : exec.get_array("env")) {
    const Json& value = variable.get("value");
    config.env.emplace_back(variable.get_string("name"), variable.get_string("value"));
    if (config.env.back().first.empty() || !(value.is_null() || value.is_string()))
      return invalid("env: write each one as a name and a value, both strings");
  }
  return config;
}

Result<ExecCredential> read_exec_credential(std::string_view api_version, std::string_view output) {
  const auto object = parse_json(output);
  if (!object || object->get_string("kind") != "ExecCredential")
    return invalid("printed no ExecCredential");
  if (object->get_string("apiVersion") != api_version)
    return invalid("printed another apiVersion than " + std::string(api_version));
  const Json& status = object->get("status");
  ExecCredential credential;
  const std::string token(status.get_string("token"));
  credential.token = Secret<std::string>(token);
  credential.client_certificate_pem = status.get_string("clientCertificateData");
  const std::string key(status.get_string("clientKeyData"));
  credential.client_key_pem = Secret<std::string>(key);
  if (credential.client_certificate_pem.empty() != key.empty())
    return invalid("printed only one of clientCertificateData and clientKeyData");
  if (token.empty() && key.empty()) return invalid("printed neither a token nor a certificate");
  if (!token.empty() && !is_token(token))
    return invalid("printed a token with characters that no token has");
  const std::string_view expiry = status.get_string("expirationTimestamp");
  credential.expires = Time::parse(expiry);
  if (!expiry.empty() && !credential.expires)
    return invalid("printed an expirationTimestamp that is no RFC 3339 time");
  return credential;
}

Result<void> ExecPlugin::renew(Time now) {
  if (is_good_ && (!credential_.expires || now < *credential_.expires)) return {};
  auto answer = run();
  if (!answer) return tl::unexpected(answer.error().at("exec plugin \"" + config_.command + "\""));
  credential_ = std::move(*answer);
  is_good_ = true;
  ++generation_;
  return {};
}

Result<ExecCredential> ExecPlugin::run() const {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (config_.interactive == ExecConfig::Interactive::kAlways && !is_terminal)
    return invalid("interactiveMode is Always, and standard input is no terminal");
  const bool is_interactive = is_terminal && config_.interactive != ExecConfig::Interactive::kNever;
  Json spec = Json::object({{"interactive", is_interactive}});
  if (config_.has_cluster_info) spec.set("cluster", config_.cluster);
  const std::string info = print_json(Json::object({{"kind", "ExecCredential"},
                                                    {"apiVersion", config_.api_version},
                                                    {"spec", std::move(spec)}}));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return invalid("no pipe for its output: " + std::string(std::strerror(errno)));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> reading(::fdopen(ends[0], "r"),
                                                                std::fclose);
  if (!reading) throw std::bad_alloc();
  pid_t child = -1;
  const int error = start(config_, info, is_interactive, ends[1], child);
  ::close(ends[1]);
  if (error != 0)
    return invalid(with_hint("cannot be started: " + std::string(std::strerror(error)), config_));
  std::string output;
  for (int c = 0; output.size() <= kMaxOutput && (c = std::fgetc(reading.get())) != EOF;)
    output += static_cast<char>(c);
  const bool is_too_long = output.size() > kMaxOutput;
  if (is_too_long) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_too_long) return invalid("printed more than 1 MiB");
  if (WIFSIGNALED(status))
    return invalid(with_hint("was ended by signal " + std::to_string(WTERMSIG(status)), config_));
  const int code = WEXITSTATUS(status);
  if (code != 0)
    return invalid(with_hint("ended with exit status " + std::to_string(code), config_));
  return read_exec_credential(config_.api_version, output);
}

}  // namespace kube
