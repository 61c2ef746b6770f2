#include "kube/client/kubeconfig.hh"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "kube/client/read_file.hh"
#include "kube/client/tls.hh"
#include "kube/client/token_source.hh"
#include "kube/client/url.hh"
#include "kube/model/digest.hh"
#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"

namespace kube {

namespace {

namespace fs = std::filesystem;

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

struct File {
  std::string path;
  Json root;
};

// This is a mapping of a file, and its path there: "users[me].user". Only the first error is kept,
// so the caller reads all fields and checks for an error once, at the end.
class Section {
 public:
  Section(const File& file, std::string place, const Json& value, std::optional<Error>& error)
      : file_(&file), place_(std::move(place)), value_(&value), error_(&error) {}

  void fail(std::string_view what) const {
    if (!*error_) *error_ = Error(ErrorCode::kInvalid, file_->path + ": " + std::string(what));
  }
  void fail(std::string_view field, std::string_view what) const {
    fail(place_ + (place_.empty() ? "" : ".") + std::string(field) + ": " + std::string(what));
  }

  const Json& get(std::string_view field) const { return value_->get(field); }
  // Returns whether the field has a value that is neither null nor empty.
  bool has(std::string_view field) const { return !get(field).empty(); }

  enum class Shown { kInErrors, kNever };

  std::string text(std::string_view field, Shown shown = Shown::kInErrors) const {
    const Json& value = get(field);
    if (value.is_string()) return value.as_string();
    const std::string it = shown == Shown::kNever ? "the value" : print_json(value);
    const bool is_scalar = value.is_number() || value.is_bool();
    if (!value.is_null())
      fail(field, it + " is of type " + std::string(value.type_name()) + ", not string; " +
                      (is_scalar ? "put it in quotes" : "write one string"));
    return {};
  }

  bool flag(std::string_view field) const {
    const Json& value = get(field);
    if (!value.is_null() && !value.is_bool())
      fail(field, print_json(value) + " is of type " + std::string(value.type_name()) +
                      ", not boolean; write true or false, without quotes");
    return value.is_bool() && value.as_bool();
  }

  std::string absolute(std::string_view path) const {
    const fs::path given(path);
    return given.is_absolute() ? given.string()
                               : (fs::path(file_->path).parent_path() / given).string();
  }

  // Returns whether data_or_file() reads a file.
  bool is_file(const std::string& name) const { return has(name) && !has(name + "-data"); }

  // Returns the text of "<name>-data" (base64, which wins) or of the file "<name>"; empty with
  // neither.
  std::string data_or_file(const std::string& name, Shown shown = Shown::kInErrors) const {
    if (const std::string data = text(name + "-data", shown); !data.empty()) {
      const auto decoded = base64_decode(data);
      if (!decoded) fail(place_ + "." + name + "-data is not base64");
      return decoded.value_or("");
    }
    const std::string path = text(name);
    if (path.empty()) return path;
    const auto content = read_file(absolute(path));
    if (!content) fail(name, content.error().message);
    return content.value_or("");
  }

 private:
  const File* file_;
  std::string place_;
  const Json* value_;
  std::optional<Error>* error_;
};

// This is one file or several. The first to have an entry or to set a value counts, like in kubectl
// (client-go, tools/clientcmd/loader.go: ClientConfigLoadingRules.Load).
class Kubeconfig {
 public:
  explicit Kubeconfig(std::vector<File> files) : files_(std::move(files)) {
    for (const File& file : files_) name_ += (name_.empty() ? "" : ":") + file.path;
  }

  void fail(const std::string& what) {
    if (!error_) error_ = Error(ErrorCode::kInvalid, name_ + ": " + what);
  }
  const std::optional<Error>& error() const { return error_; }

  std::string current_context() {
    for (const File& file : files_) {
      const std::string name = Section(file, "", file.root, error_).text("current-context");
      if (!name.empty()) return name;
    }
    fail("current-context is not set; name a context");
    return {};
  }

  // Returns the entry `name` of the list `list`, e.g. ("users", "user", "me").
  std::optional<Section> entry(const std::string& list, const std::string& member,
                               const std::string& name) {
    for (const File& file : files_) {
      const Json& entries = file.root.get(list);
      if (entries.is_null()) continue;
      const Section root(file, "", file.root, error_);
      if (!entries.is_array())
        root.fail(list, "it is of type " + std::string(entries.type_name()) + ", not array");
      for (const Json& each : file.root.get_array(list)) {
        const auto index = std::to_string(&each - entries.as_array().data());
        if (Section(file, list + "[" + index + "]", each, error_).text("name") != name) continue;
        const Json& value = each.get(member);
        if (value.is_object())
          return Section(file, list + "[" + name + "]." + member, value, error_);
        root.fail(list + " entry \"" + name + "\" has no " + member);
        return std::nullopt;
      }
    }
    fail(list + " has no entry \"" + name + "\"");
    return std::nullopt;
  }

 private:
  std::vector<File> files_;
  std::string name_;
  std::optional<Error> error_;
};

void read_cluster(const Section& cluster, ClientConfig& config) {
  config.server = cluster.text("server");
  if (const auto url = parse_server_url(config.server); !url) cluster.fail(url.error().message);
  if (cluster.has("proxy-url")) cluster.fail("proxy-url is not supported; connect without a proxy");
  config.tls_server_name = cluster.text("tls-server-name");
  config.insecure_skip_tls_verify = cluster.flag("insecure-skip-tls-verify");
  config.ca_pem = cluster.data_or_file("certificate-authority");
}

// Unsupported ways to authenticate are refused, since they would be ignored otherwise.
void refuse_unsupported(const std::string& name, const Section& user, ExecUsers exec_users) {
  for (const char* const plugin : {"exec", "auth-provider"}) {
    if (exec_users == ExecUsers::kAllowed && plugin == std::string_view("exec")) continue;
    if (user.get(plugin).is_null()) continue;
    user.fail("user \"" + name + "\" signs in with " + plugin +
              ", which would start another program; use a token, a tokenFile or a client "
              "certificate (kubectl create token makes one)");
  }
  if (user.has("username") || user.has("password"))
    user.fail("user \"" + name +
              "\" signs in with a password, which Kubernetes no longer accepts; use a token or a "
              "client certificate");
  for (const char* const field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (!user.has(field)) continue;
    user.fail("user \"" + name + "\" impersonates " + print_json(user.get(field)) + " (" + field +
              "), which is not supported; sign in as that user");
  }
}

void read_token(const Section& user, ClientConfig& config) {
  std::string text = trimmed(user.text("token", Section::Shown::kNever));
  const std::string path = user.text("tokenFile");
  if (!text.empty() && !is_token(text))
    user.fail("token", "there are characters inside that no token has, such as blanks");
  if (!path.empty()) {
    config.token_file = user.absolute(path);
    if (text.empty()) {
      const auto content = read_file(config.token_file);
      if (!content) user.fail("tokenFile", content.error().message + "; write a token there");
      text = trimmed(content.value_or(""));
      if (!is_token(text)) user.fail("tokenFile", config.token_file + " holds no token");
    }
  }
  config.token = Secret<std::string>(std::move(text));
}

// A plugin may ask for this of the cluster (client-go, pkg/apis/clientauthentication: Cluster).
Json cluster_info(const Section& cluster, const ClientConfig& config) {
  Json info = Json::object({{"server", config.server}});
  if (!config.tls_server_name.empty()) info.set("tls-server-name", config.tls_server_name);
  if (config.insecure_skip_tls_verify) info.set("insecure-skip-tls-verify", true);
  if (!config.ca_pem.empty()) info.set("certificate-authority-data", base64_encode(config.ca_pem));
  const Json& extensions = cluster.get("extensions");
  if (!extensions.is_array()) return info;
  for (const Json& each : extensions.as_array())
    if (each.get_string("name") == "client.authentication.k8s.io/exec")
      info.set("config", each.get("extension"));
  return info;
}

void read_exec(const Section& user, const Section& cluster, ClientConfig& config) {
  if (!user.has("exec") || !config.token.reveal().empty() || !config.token_file.empty()) return;
  auto exec = read_exec_config(user.get("exec"));
  if (!exec) return user.fail("exec", exec.error().message);
  if (exec->command.find('/') != std::string::npos) exec->command = user.absolute(exec->command);
  if (exec->has_cluster_info) exec->cluster = cluster_info(cluster, config);
  config.exec_plugin = std::make_shared<ExecPlugin>(std::move(*exec));
}

void read_user(const std::string& name, const Section& user, ExecUsers exec_users,
               ClientConfig& config) {
  refuse_unsupported(name, user, exec_users);
  config.client_certificate_pem = user.data_or_file("client-certificate");
  const std::string key = user.data_or_file("client-key", Section::Shown::kNever);
  if (config.client_certificate_pem.empty() != key.empty())
    user.fail("user \"" + name + "\" has only one of client-certificate and client-key");
  config.client_key_pem = Secret<std::string>(key);
  if (user.is_file("client-certificate") && user.is_file("client-key")) {
    config.client_certificate_file = user.absolute(user.text("client-certificate"));
    config.client_key_file = user.absolute(user.text("client-key"));
  }
  read_token(user, config);
}

Result<ClientConfig> read_context(Kubeconfig& kubeconfig, const std::string& name,
                                  ExecUsers exec_users) {
  ClientConfig config;
  if (const auto context = kubeconfig.entry("contexts", "context", name)) {
    const std::string cluster_name = context->text("cluster");
    const std::string user_name = context->text("user");
    const std::string ns = context->text("namespace");
    if (!ns.empty()) config.ns = ns;
    if (cluster_name.empty()) context->fail("cluster", "is not set; name a cluster");
    const auto cluster = kubeconfig.entry("clusters", "cluster", cluster_name);
    if (cluster) read_cluster(*cluster, config);
    std::optional<Section> user;
    if (!user_name.empty()) user = kubeconfig.entry("users", "user", user_name);
    if (user) read_user(user_name, *user, exec_users, config);
    if (user && cluster) read_exec(*user, *cluster, config);
  }
  if (const auto tls = ClientTls::make(config, ""); !tls) kubeconfig.fail(tls.error().message);
  if (kubeconfig.error()) return tl::unexpected(*kubeconfig.error());
  return config;
}

Result<File> load_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  // Kubectl takes such a file for a new one.
  if (trimmed(*text).empty()) return File{path, Json::object()};
  auto root = parse_yaml(*text);
  if (!root) return tl::unexpected(root.error().at(path));
  if (!root->is_object())
    return fail(ErrorCode::kInvalid, path + " is no kubeconfig: it is of type " +
                                         std::string(root->type_name()) + ", not object");
  return File{path, std::move(*root)};
}

Result<ClientConfig> load_files(const std::vector<std::string>& paths, const std::string& context,
                                ExecUsers exec_users) {
  std::vector<File> files;
  for (const auto& path : paths) {
    auto file = load_file(path);
    if (!file) return tl::unexpected(file.error());
    files.push_back(std::move(*file));
  }
  Kubeconfig kubeconfig(std::move(files));
  return read_context(kubeconfig, context.empty() ? kubeconfig.current_context() : context,
                      exec_users);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns whether a kubeconfig names a cluster to use, or is no kubeconfig: then the error is
// shown.
bool says_something(const std::string& path) {
  const auto file = load_file(path);
  return !file || !file->root.get("current-context").empty();
}

// Loads the files of a list such as $KUBECONFIG. If there are several, those that do not exist are
// skipped.
Result<ClientConfig> load_listed(const std::string& list, const std::string& context,
                                 ExecUsers exec_users) {
  std::vector<std::string> paths;
  std::istringstream rest(list);
  for (std::string path; std::getline(rest, path, ':');) {
    if (!path.empty()) paths.push_back(path);
  }
  if (paths.size() == 1) return load_files(paths, context, exec_users);
  std::erase_if(paths, [](const std::string& path) { return !exists(path); });
  if (paths.empty())
    return fail(ErrorCode::kNotFound, "none of the files in KUBECONFIG exists: " + list);
  return load_files(paths, context, exec_users);
}

}  // namespace

Result<ClientConfig> in_cluster_config() {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return fail(
        ErrorCode::kNotFound,
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const std::string folder = kServiceAccount;
  auto ca = read_file(folder + "ca.crt");
  if (!ca) return tl::unexpected(ca.error().at("service account"));
  const auto token = read_file(folder + "token");
  if (!token) return tl::unexpected(token.error().at("service account"));

  ClientConfig config;
  const bool is_v6 = host.find(':') != std::string::npos;
  config.server = "https://" + (is_v6 ? "[" + host + "]" : host) + ":" + port;
  config.ca_pem = std::move(*ca);
  config.token_file = folder + "token";
  config.token = Secret<std::string>(trimmed(*token));
  if (!is_token(config.token.reveal()))
    return fail(ErrorCode::kInvalid, "service account: " + config.token_file + " holds no token");
  if (const auto ns = read_file(folder + "namespace")) config.ns = trimmed(*ns);
  const auto tls = ClientTls::make(config, host);
  if (!tls) return tl::unexpected(tls.error().at("service account"));
  return config;
}

Result<ClientConfig> load_config(const std::string& path, const std::string& context,
                                 ExecUsers exec_users) {
  if (!path.empty()) return load_files({path}, context, exec_users);
  if (const std::string named = environment("KUBECONFIG"); !named.empty())
    return load_listed(named, context, exec_users);
  const std::string home = environment("HOME");
  const std::string standard = home + "/.kube/config";
  const bool has_file = !home.empty() && exists(standard);
  const bool is_person = exec_users == ExecUsers::kAllowed;
  if (has_file && (!context.empty() || (is_person && says_something(standard))))
    return load_files({standard}, context, exec_users);
  if (!context.empty())
    return fail(ErrorCode::kNotFound, "no context \"" + context +
                                          "\": KUBECONFIG is not set, and ~/.kube/config does not "
                                          "exist; name a kubeconfig");
  auto in_cluster = in_cluster_config();
  if (in_cluster) return in_cluster;
  if (has_file) return load_files({standard}, context, exec_users);
  if (!environment("KUBERNETES_SERVICE_HOST").empty()) return in_cluster;
  return fail(
      ErrorCode::kNotFound,
      "no cluster: KUBECONFIG is not set, this is no pod, and ~/.kube/config does not exist");
}

}  // namespace kube
