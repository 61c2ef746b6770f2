// TLS contexts are made from PEM texts, with the settings that each connection needs.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "kube/model/error.hh"
#include "kube/model/secret.hh"

namespace kube {

struct ClientConfig;  // kubeconfig.hh

// All connections to one server share certificates, and the latest session, so that a reconnect
// skips the key exchange.
class ClientTls {
 public:
  // Errors (kInvalid) name the unusable CA, certificate or key.
  static Result<std::unique_ptr<ClientTls>> make(const ClientConfig& config, std::string host);
  ~ClientTls();
  ClientTls(const ClientTls&) = delete;
  ClientTls& operator=(const ClientTls&) = delete;

  boost::asio::ssl::context& context() { return context_; }
  // Sets server name, expected host and session before the handshake.
  bool prepare(SSL* connection);
  void keep(SSL_SESSION* session);

 private:
  ClientTls();
  boost::asio::ssl::context context_;
  std::string server_name_;
  bool is_verified_ = true;
  SSL_SESSION* session_ = nullptr;
};

using ServerTls = std::shared_ptr<boost::asio::ssl::context>;

struct ServerTlsOptions {
  std::string min_version = "1.2";
  std::string ciphers;        // the suites of TLS 1.2, in OpenSSL's form; empty: OpenSSL's defaults
  std::string client_ca_pem;  // empty: clients are not asked for a certificate
  ServerTlsOptions() {}
};

// Errors (kInvalid) name the unusable certificate, key, cipher list or version ("1.2" and "1.3" are
// known). If a client's certificate is missing or not trusted, the handshake goes on:
// client_certificate() says so, and the server can answer why it refuses.
Result<ServerTls> make_server_tls(const std::string& certificate_pem,
                                  const Secret<std::string>& key_pem,
                                  const ServerTlsOptions& options = ServerTlsOptions());

enum class ClientCertificate { kNone, kUntrusted, kTrusted };

// It is called after the handshake of a server.
ClientCertificate client_certificate(const SSL* connection);

// Returns OpenSSL's name of a cipher suite by its IANA name, which Go uses too; empty for a suite
// of TLS 1.3, nullopt for one that this build of OpenSSL does not have.
std::optional<std::string> openssl_cipher(const std::string& iana_name);

// Returns why the peer's certificate was refused, or an empty string if that was not the problem.
std::string verification_error(SSL* connection);

}  // namespace kube
