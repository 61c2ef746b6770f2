#include "kube/client/kubeconfig.hh"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

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

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::kNotFound, path + " cannot be read");
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

// What a request may carry: no blanks, no line breaks.
bool is_token(const std::string& text) {
  return !TokenSource(Secret<std::string>(text), "").authorization({}).reveal().empty();
}

// One file, whose folder the relative paths inside refer to.
struct File {
  std::string path;
  Json root;
};

// A mapping of a file that has been found, and its place there: "users[me].user".
class Section {
 public:
  Section(const File& file, std::string place, const Json& value)
      : file_(&file), place_(std::move(place)), value_(&value) {}

  tl::unexpected<Error> bad(std::string_view what) const {
    return fail(ErrorCode::kInvalid, file_->path + ": " + std::string(what));
  }
  tl::unexpected<Error> bad(std::string_view field, std::string_view what) const {
    return bad(place_ + (place_.empty() ? "" : ".") + std::string(field) + ": " +
               std::string(what));
  }

  const Json* find(std::string_view field) const { return value_->find(field); }
  // Whether the field says anything: null and what is empty do not.
  bool has(std::string_view field) const {
    const Json* const value = find(field);
    return value != nullptr && !value->empty();
  }

  enum class Shown { kInErrors, kNever };
  // Empty where there is none.
  Result<std::string> text(std::string_view field, Shown shown = Shown::kInErrors) const {
    const Json* const value = find(field);
    if (value == nullptr || value->is_null()) return std::string();
    if (value->is_string()) return value->as_string();
    const std::string it = shown == Shown::kNever ? "the value" : print_json(*value);
    const bool is_scalar = value->is_number() || value->is_bool();
    return bad(field, it + " is of type " + std::string(value->type_name()) + ", not string; " +
                          (is_scalar ? "put it in quotes" : "write one string"));
  }
  Result<bool> flag(std::string_view field) const {
    const Json* const value = find(field);
    if (value == nullptr || value->is_null()) return false;
    if (value->is_bool()) return value->as_bool();
    return bad(field, print_json(*value) + " is of type " + std::string(value->type_name()) +
                          ", not boolean; write true or false, without quotes");
  }

  std::string absolute(std::string_view path) const {
    const fs::path given(path);
    return given.is_absolute() ? given.string()
                               : (fs::path(file_->path).parent_path() / given).string();
  }
  // The text of "<name>-data" (base64, which wins) or of the file "<name>"; empty with neither.
  Result<std::string> data_or_file(const std::string& name, Shown shown = Shown::kInErrors) const {
    const auto data = text(name + "-data", shown);
    if (!data) return tl::unexpected(data.error());
    if (!data->empty()) {
      auto decoded = base64_decode(*data);
      if (!decoded) return bad(place_ + "." + name + "-data is not base64");
      return std::move(*decoded);
    }
    const auto path = text(name);
    if (!path || path->empty()) return path;
    auto content = read_file(absolute(*path));
    if (!content) return bad(name, content.error().message);
    return content;
  }

 private:
  const File* file_;
  std::string place_;
  const Json* value_;
};

// One file or several, of which the first to have an entry or to set a value counts, as with
// kubectl (client-go, tools/clientcmd/loader.go: ClientConfigLoadingRules.Load).
class Kubeconfig {
 public:
  explicit Kubeconfig(std::vector<File> files) : files_(std::move(files)) {
    for (const File& file : files_) name_ += (name_.empty() ? "" : ":") + file.path;
  }

  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorCode::kInvalid, name_ + ": " + what);
  }

  Result<std::string> current_context() const {
    for (const File& file : files_) {
      const Section root(file, "", file.root);
      auto name = root.text("current-context");
      if (!name || !name->empty()) return name;
    }
    return bad("current-context is not set; name a context");
  }

  // The entry `name` of the list `list`, e.g. ("users", "user", "me").
  Result<Section> entry(const std::string& list, const std::string& member,
                        const std::string& name) const {
    for (const File& file : files_) {
      const Json* const entries = file.root.find(list);
      if (entries == nullptr || entries->is_null()) continue;
      const Section root(file, "", file.root);
      if (!entries->is_array())
        return root.bad(list, "it is of type " + std::string(entries->type_name()) + ", not array");
      for (const Json& each : entries->as_array()) {
        const auto index = std::to_string(&each - entries->as_array().data());
        const Section item(file, list + "[" + index + "]", each);
        const auto its_name = item.text("name");
        if (!its_name) return tl::unexpected(its_name.error());
        if (*its_name != name) continue;
        const Json* const value = each.find(member);
        if (value == nullptr || !value->is_object())
          return root.bad(list + " entry \"" + name + "\" has no " + member);
        return Section(file, list + "[" + name + "]." + member, *value);
      }
    }
    return bad(list + " has no entry \"" + name + "\"");
  }

 private:
  std::vector<File> files_;
  std::string name_;
};

Result<void> read_cluster(const Section& cluster, ClientConfig& config) {
  auto server = cluster.text("server");
  if (!server) return tl::unexpected(server.error());
  config.server = std::move(*server);
  const auto url = parse_server_url(config.server);
  if (!url) return cluster.bad(url.error().message);
  if (cluster.has("proxy-url"))
    return cluster.bad("proxy-url is not supported; connect without a proxy");
  auto name = cluster.text("tls-server-name");
  if (!name) return tl::unexpected(name.error());
  config.tls_server_name = std::move(*name);
  const auto is_insecure = cluster.flag("insecure-skip-tls-verify");
  if (!is_insecure) return tl::unexpected(is_insecure.error());
  config.insecure_skip_tls_verify = *is_insecure;
  auto ca = cluster.data_or_file("certificate-authority");
  if (!ca) return tl::unexpected(ca.error());
  config.ca_pem = std::move(*ca);
  return {};
}

// Ways to sign in that would be left out in silence otherwise.
Result<void> refuse_unsupported(const std::string& name, const Section& user,
                                ExecUsers exec_users) {
  for (const char* const plugin : {"exec", "auth-provider"}) {
    if (exec_users == ExecUsers::kAllowed && plugin == std::string_view("exec")) continue;
    if (const Json* const value = user.find(plugin); value == nullptr || value->is_null()) continue;
    return user.bad("user \"" + name + "\" signs in with " + plugin +
                    ", which would start another program; use a token, a tokenFile or a client "
                    "certificate (kubectl create token makes one)");
  }
  if (user.has("username") || user.has("password")) {
    return user.bad("user \"" + name +
                    "\" signs in with a password, which Kubernetes no longer "
                    "accepts; use a token or a client certificate");
  }
  for (const char* const field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (!user.has(field)) continue;
    return user.bad("user \"" + name + "\" impersonates " + print_json(*user.find(field)) + " (" +
                    field + "), which is not supported; sign in as that user");
  }
  return {};
}

Result<void> read_token(const Section& user, ClientConfig& config) {
  const auto token = user.text("token", Section::Shown::kNever);
  if (!token) return tl::unexpected(token.error());
  const auto path = user.text("tokenFile");
  if (!path) return tl::unexpected(path.error());
  std::string text = trimmed(*token);
  if (!text.empty() && !is_token(text))
    return user.bad("token", "there are characters inside that no token has, such as blanks");
  if (!path->empty()) {
    config.token_file = user.absolute(*path);
    if (text.empty()) {
      const auto content = read_file(config.token_file);
      if (!content) return user.bad("tokenFile", content.error().message + "; write a token there");
      text = trimmed(*content);
      if (!is_token(text)) return user.bad("tokenFile", config.token_file + " holds no token");
    }
  }
  config.token = Secret<std::string>(std::move(text));
  return {};
}

// What a plugin may ask for of the cluster (client-go, pkg/apis/clientauthentication: Cluster).
Json cluster_info(const Section& cluster, const ClientConfig& config) {
  Json info = Json::object({{"server", config.server}});
  if (!config.tls_server_name.empty()) info.set("tls-server-name", config.tls_server_name);
  if (config.insecure_skip_tls_verify) info.set("insecure-skip-tls-verify", true);
  if (!config.ca_pem.empty()) info.set("certificate-authority-data", base64_encode(config.ca_pem));
  const Json* const extensions = cluster.find("extensions");
  if (extensions == nullptr || !extensions->is_array()) return info;
  for (const Json& each : extensions->as_array())
    if (each.get_string("name") == "client.authentication.k8s.io/exec")
      info.set("config", each.get("extension"));
  return info;
}

Result<void> read_exec(const Section& user, const Section& cluster, ClientConfig& config) {
  if (!user.has("exec") || !config.token.reveal().empty() || !config.token_file.empty()) return {};
  auto exec = read_exec_config(*user.find("exec"));
  if (!exec) return user.bad("exec", exec.error().message);
  if (exec->command.find('/') != std::string::npos) exec->command = user.absolute(exec->command);
  if (exec->has_cluster_info) exec->cluster = cluster_info(cluster, config);
  config.exec_plugin = std::make_shared<ExecPlugin>(std::move(*exec));
  return {};
}

Result<void> read_user(const std::string& name, const Section& user, ExecUsers exec_users,
                       ClientConfig& config) {
  if (const auto is_supported = refuse_unsupported(name, user, exec_users); !is_supported)
    return is_supported;
  auto certificate = user.data_or_file("client-certificate");
  if (!certificate) return tl::unexpected(certificate.error());
  auto key = user.data_or_file("client-key", Section::Shown::kNever);
  if (!key) return tl::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return user.bad("user \"" + name + "\" has only one of client-certificate and client-key");
  }
  config.client_certificate_pem = std::move(*certificate);
  config.client_key_pem = Secret<std::string>(std::move(*key));
  return read_token(user, config);
}

Result<ClientConfig> read_context(const Kubeconfig& kubeconfig, const std::string& name,
                                  ExecUsers exec_users) {
  const auto context = kubeconfig.entry("contexts", "context", name);
  if (!context) return tl::unexpected(context.error());
  ClientConfig config;
  std::string names[3];
  const char* const fields[] = {"cluster", "user", "namespace"};
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    auto text = context->text(fields[i]);
    if (!text) return tl::unexpected(text.error());
    names[i] = std::move(*text);
  }
  const auto& [cluster_name, user_name, ns] = names;
  if (!ns.empty()) config.ns = ns;
  if (cluster_name.empty()) return context->bad("cluster", "is not set; name a cluster");
  const auto cluster = kubeconfig.entry("clusters", "cluster", cluster_name);
  if (!cluster) return tl::unexpected(cluster.error());
  if (const auto is_read = read_cluster(*cluster, config); !is_read)
    return tl::unexpected(is_read.error());
  if (!user_name.empty()) {
    const auto user = kubeconfig.entry("users", "user", user_name);
    if (!user) return tl::unexpected(user.error());
    if (const auto is_read = read_user(user_name, *user, exec_users, config); !is_read)
      return tl::unexpected(is_read.error());
    if (const auto is_read = read_exec(*user, *cluster, config); !is_read)
      return tl::unexpected(is_read.error());
  }
  const auto tls = ClientTls::make(config, "");
  if (!tls) return kubeconfig.bad(tls.error().message);
  return config;
}

Result<File> load_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  if (trimmed(*text).empty()) return File{path, Json::object()};  // kubectl takes one for new
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
  const Kubeconfig kubeconfig(std::move(files));
  if (!context.empty()) return read_context(kubeconfig, context, exec_users);
  const auto current = kubeconfig.current_context();
  if (!current) return tl::unexpected(current.error());
  return read_context(kubeconfig, *current, exec_users);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The files of a list such as $KUBECONFIG. Of several those that do not exist are passed over.
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
  if (auto in_cluster = in_cluster_config()) return in_cluster;
  const std::string home = environment("HOME");
  const std::string standard = home + "/.kube/config";
  if (!home.empty() && exists(standard)) return load_files({standard}, context, exec_users);
  return fail(
      ErrorCode::kNotFound,
      "no cluster: KUBECONFIG is not set, this is no pod, and ~/.kube/config does not exist");
}

}  // namespace kube
