#include "kube/client/kubeconfig.hh"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kube/client/tls.hh"
#include "kube/client/url.hh"
#include "kube/model/digest.hh"
#include "kube/model/json.hh"
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

// A kubeconfig's tree, and the file that its errors and relative paths refer to.
class KubeconfigFile {
 public:
  KubeconfigFile(std::string path, Json root) : path_(std::move(path)), root_(std::move(root)) {}

  const Json& root() const { return root_; }
  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorCode::kInvalid, path_ + ": " + what);
  }

  // The entry `name` of the list `list`, e.g. ("users", "user", "me").
  Result<const Json*> entry(std::string_view list, std::string_view member,
                            std::string_view name) const {
    for (const Json& each : root_.get_array(list)) {
      if (each.get_string("name") != name) continue;
      const Json* const value = each.find(member);
      if (value != nullptr && value->is_object()) return value;
      return bad(std::string(list) + " entry \"" + std::string(name) + "\" has no " +
                 std::string(member));
    }
    return bad(std::string(list) + " has no entry \"" + std::string(name) + "\"");
  }

  std::string absolute(std::string_view path) const {
    const fs::path given(path);
    return given.is_absolute() ? given.string() : (fs::path(path_).parent_path() / given).string();
  }

  // The text of "<name>-data" (base64, which wins) or of the file "<name>"; empty with neither.
  Result<std::string> data_or_file(const Json& from, const std::string& name) const {
    if (const auto data = from.get_string(name + "-data"); !data.empty()) {
      auto decoded = base64_decode(data);
      if (!decoded) return bad(name + "-data is not base64");
      return std::move(*decoded);
    }
    const auto path = from.get_string(name);
    if (path.empty()) return std::string();
    auto text = read_file(absolute(path));
    if (!text) return bad(name + ": " + text.error().message);
    return text;
  }

 private:
  std::string path_;
  Json root_;
};

Result<void> read_cluster(const KubeconfigFile& file, const Json& cluster, ClientConfig& config) {
  config.server = cluster.get_string("server");
  const auto url = parse_server_url(config.server);
  if (!url) return file.bad(url.error().message);
  if (!cluster.get_string("proxy-url").empty()) {
    return file.bad("proxy-url is not supported; connect without a proxy");
  }
  config.tls_server_name = cluster.get_string("tls-server-name");
  config.insecure_skip_tls_verify = cluster.get_bool("insecure-skip-tls-verify");
  auto ca = file.data_or_file(cluster, "certificate-authority");
  if (!ca) return tl::unexpected(ca.error());
  config.ca_pem = std::move(*ca);
  return {};
}

Result<void> read_user(const KubeconfigFile& file, const std::string& name, const Json& user,
                       ClientConfig& config) {
  for (const char* const plugin : {"exec", "auth-provider"}) {
    if (user.find(plugin) == nullptr) continue;
    return file.bad("user \"" + name + "\" signs in with " + plugin +
                    ", which would start another program; use a token, a tokenFile or a client "
                    "certificate (kubectl create token makes one)");
  }
  if (user.find("username") != nullptr) {
    return file.bad("user \"" + name +
                    "\" signs in with a password, which Kubernetes no longer "
                    "accepts; use a token or a client certificate");
  }
  if (const auto as = user.get_string("as"); !as.empty()) {
    return file.bad("user \"" + name + "\" impersonates \"" + std::string(as) +
                    "\", which is not supported; sign in as that user");
  }
  auto certificate = file.data_or_file(user, "client-certificate");
  if (!certificate) return tl::unexpected(certificate.error());
  auto key = file.data_or_file(user, "client-key");
  if (!key) return tl::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return file.bad("user \"" + name + "\" has only one of client-certificate and client-key");
  }
  config.client_certificate_pem = std::move(*certificate);
  config.client_key_pem = Secret<std::string>(std::move(*key));
  config.token = Secret<std::string>(trimmed(std::string(user.get_string("token"))));
  if (const auto path = user.get_string("tokenFile"); !path.empty()) {
    config.token_file = file.absolute(path);
  }
  return {};
}

Result<ClientConfig> load_file(const std::string& path, const std::string& wanted) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  auto root = parse_yaml(*text);
  if (!root) return tl::unexpected(root.error().at(path));
  const KubeconfigFile file(path, std::move(*root));

  const std::string context_name =
      wanted.empty() ? std::string(file.root().get_string("current-context")) : wanted;
  if (context_name.empty()) return file.bad("current-context is not set; name a context");
  const auto context = file.entry("contexts", "context", context_name);
  if (!context) return tl::unexpected(context.error());
  const auto cluster = file.entry("clusters", "cluster", (*context)->get_string("cluster"));
  if (!cluster) return tl::unexpected(cluster.error());
  const std::string user_name((*context)->get_string("user"));

  ClientConfig config;
  config.ns = (*context)->get_string("namespace", "default");
  const auto is_read = read_cluster(file, **cluster, config);
  if (!is_read) return tl::unexpected(is_read.error());
  if (!user_name.empty()) {
    const auto user = file.entry("users", "user", user_name);
    if (!user) return tl::unexpected(user.error());
    const auto is_user_read = read_user(file, user_name, **user, config);
    if (!is_user_read) return tl::unexpected(is_user_read.error());
  }
  const auto tls = ClientTls::make(config, "");
  if (!tls) return file.bad(tls.error().message);
  return config;
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
  if (const auto ns = read_file(folder + "namespace")) config.ns = trimmed(*ns);
  const auto tls = ClientTls::make(config, host);
  if (!tls) return tl::unexpected(tls.error().at("service account"));
  return config;
}

Result<ClientConfig> load_config(const std::string& path, const std::string& context) {
  if (!path.empty()) return load_file(path, context);
  if (const std::string named = environment("KUBECONFIG"); !named.empty()) {
    if (named.find(':') != std::string::npos) {
      return fail(ErrorCode::kInvalid, "KUBECONFIG lists several files (\"" + named +
                                           "\"); name the one to use with --kubeconfig");
    }
    return load_file(named, context);
  }
  if (auto in_cluster = in_cluster_config()) return in_cluster;
  const std::string home = environment("HOME");
  const std::string standard = home + "/.kube/config";
  if (!home.empty() && fs::exists(standard)) return load_file(standard, context);
  return fail(
      ErrorCode::kNotFound,
      "no cluster: KUBECONFIG is not set, this is no pod, and ~/.kube/config does not exist");
}

}  // namespace kube
