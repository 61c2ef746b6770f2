#include "kube/client/tls.hh"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "kube/client/kubeconfig.hh"

namespace kube {

namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

bool is_address(const std::string& host) {
  error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

tl::unexpected<Error> unusable(std::string_view what, const error_code& error) {
  return fail(ErrorCode::kInvalid, "the " + std::string(what) + " is unusable: " + error.message());
}

Result<void> use_key_pair(ssl::context& context, const std::string& certificate,
                          const Secret<std::string>& key, const std::string& whose) {
  error_code error;
  context.use_certificate_chain(boost::asio::buffer(certificate), error);
  if (error) return unusable(whose + " certificate", error);
  // Without a callback OpenSSL would ask the terminal for the passphrase of an encrypted key.
  SSL_CTX_set_default_passwd_cb(context.native_handle(), [](char*, int, int, void*) { return 0; });
  context.use_private_key(boost::asio::buffer(key.reveal()), ssl::context::pem, error);
  if (error && key.reveal().find("ENCRYPTED") != std::string::npos) {
    return fail(ErrorCode::kInvalid, "the " + whose +
                                         " key is encrypted, and nothing here asks for its "
                                         "passphrase; write the key without one");
  }
  if (error) return unusable(whose + " key", error);
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return fail(ErrorCode::kInvalid, "the " + whose + " key does not belong to the certificate");
  }
  return {};
}

// Any trusted certificate is an anchor, also one that another has signed, like in Go (crypto/x509:
// VerifyOptions.Roots).
void trust(ssl::context& context, const std::string& ca_pem, error_code& error) {
  context.add_certificate_authority(boost::asio::buffer(ca_pem), error);
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.native_handle()),
                              X509_V_FLAG_PARTIAL_CHAIN);
}

// This slot of an SSL_CTX refers to its ClientTls.
int owner_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

int on_new_session(SSL* connection, SSL_SESSION* session) {
  auto* owner =
      static_cast<ClientTls*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), owner_slot()));
  owner->keep(session);
  return 1;  // the reference is owned here now
}

// This slot of an SSL is set once any check of the client's certificate has failed.
int refused_slot() {
  static const int slot = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

int accept_any(int is_ok, X509_STORE_CTX* store) {
  static char refused = 0;
  auto* connection =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (is_ok == 0) SSL_set_ex_data(connection, refused_slot(), &refused);
  return 1;
}

}  // namespace

ClientTls::ClientTls() : context_(ssl::context::tls_client) {
  SSL_CTX* const native = context_.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_set_ex_data(native, owner_slot(), this);
  SSL_CTX_sess_set_new_cb(native, on_new_session);
}

ClientTls::~ClientTls() {
  SSL_SESSION_free(session_);
}

Result<std::unique_ptr<ClientTls>> ClientTls::make(const ClientConfig& config, std::string host) {
  std::unique_ptr<ClientTls> tls(new ClientTls());
  tls->server_name_ = config.tls_server_name.empty() ? std::move(host) : config.tls_server_name;
  tls->is_verified_ = !config.insecure_skip_tls_verify;
  ssl::context& context = tls->context_;
  error_code error;
  context.set_verify_mode(tls->is_verified_ ? ssl::verify_peer : ssl::verify_none, error);
  if (error) return unusable("TLS verification mode", error);
  if (config.ca_pem.empty()) {
    context.set_default_verify_paths(error);
  } else {
    trust(context, config.ca_pem, error);
  }
  if (error) return unusable("cluster's CA certificate", error);
  if (!config.client_certificate_pem.empty()) {
    const auto used =
        use_key_pair(context, config.client_certificate_pem, config.client_key_pem, "client's");
    if (!used) return tl::unexpected(used.error());
  }
  return tls;
}

bool ClientTls::prepare(SSL* connection) {
  const bool is_ip = is_address(server_name_);
  if (!is_ip && SSL_set_tlsext_host_name(connection, server_name_.c_str()) != 1) return false;
  if (is_verified_) {
    const int is_set =
        is_ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), server_name_.c_str())
              : SSL_set1_host(connection, server_name_.c_str());
    if (is_set != 1) return false;
    // Go does not check it either.
    SSL_set_hostflags(connection, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  }
  if (session_ != nullptr) SSL_set_session(connection, session_);
  return true;
}

void ClientTls::keep(SSL_SESSION* session) {
  SSL_SESSION_free(session_);
  session_ = session;
}

Result<ServerTls> make_server_tls(const std::string& certificate_pem,
                                  const Secret<std::string>& key_pem,
                                  const ServerTlsOptions& options) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  if (options.min_version != "1.2" && options.min_version != "1.3") {
    return fail(ErrorCode::kInvalid, "TLS version \"" + options.min_version +
                                         "\" is not known; write \"1.2\" or \"1.3\"");
  }
  SSL_CTX_set_min_proto_version(native,
                                options.min_version == "1.3" ? TLS1_3_VERSION : TLS1_2_VERSION);
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(native, options.ciphers.c_str()) != 1) {
    return fail(ErrorCode::kInvalid,
                "none of the cipher suites \"" + options.ciphers + "\" can be used");
  }
  const auto used = use_key_pair(*context, certificate_pem, key_pem, "server's");
  if (!used) return tl::unexpected(used.error());
  if (!options.client_ca_pem.empty()) {
    error_code error;
    trust(*context, options.client_ca_pem, error);
    if (error) return unusable("CA certificate of clients", error);
    SSL_CTX_set_verify(native, SSL_VERIFY_PEER, accept_any);
    // A resumed session would carry the result of an earlier verification.
    SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(native, 0);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  }
  return context;
}

ClientCertificate client_certificate(const SSL* connection) {
  if (SSL_get0_peer_certificate(connection) == nullptr) return ClientCertificate::kNone;
  const bool is_trusted = SSL_get_verify_result(connection) == X509_V_OK &&
                          SSL_get_ex_data(connection, refused_slot()) == nullptr;
  return is_trusted ? ClientCertificate::kTrusted : ClientCertificate::kUntrusted;
}

std::optional<std::string> openssl_cipher(const std::string& iana_name) {
  const std::string name = OPENSSL_cipher_name(iana_name.c_str());
  if (name == "(NONE)") return std::nullopt;
  // Only suites of 1.3 have the same name in both.
  return name.starts_with("TLS_") ? std::string() : name;
}

std::string verification_error(SSL* connection) {
  const long result = SSL_get_verify_result(connection);
  return result == X509_V_OK ? std::string() : X509_verify_cert_error_string(result);
}

}  // namespace kube
