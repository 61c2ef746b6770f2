#include "kube/client/certificates.hh"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

#include "kube/client/openssl.hh"
#include "kube/model/digest.hh"

namespace kube {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::hours kDay = 24h;
constexpr auto kCaLife = 3650 * kDay;
constexpr auto kServerLife = 365 * kDay;
constexpr auto kAhead = 90 * kDay;
constexpr auto kClockSkew = 1h;
constexpr const char* kCaName = "kubeflow-trainer-ca";
constexpr const char* kOrganization = "kubeflow-trainer";

using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;

struct Pair {
  X509Ptr certificate;
  PkeyPtr key;
};

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool is_ip_address(const std::string& host) {
  using OctetsPtr = std::unique_ptr<ASN1_OCTET_STRING, OpensslFree<ASN1_OCTET_STRING_free>>;
  return OctetsPtr(a2i_IPADDRESS(host.c_str())) != nullptr;
}

// The names are added by structures instead of OpenSSL's configuration syntax, in which a comma in
// a host would mean another entry.
bool add_subject_names(X509* certificate, const std::vector<std::string>& hosts) {
  const NamesPtr names(GENERAL_NAMES_new());
  for (const std::string& host : hosts) {
    const bool is_ip = is_ip_address(host);
    GENERAL_NAME* name = GENERAL_NAME_new();
    if (name == nullptr || sk_GENERAL_NAME_push(names.get(), name) == 0) return false;
    ASN1_STRING* value = is_ip ? a2i_IPADDRESS(host.c_str()) : ASN1_IA5STRING_new();
    if (value == nullptr) return false;
    if (!is_ip && ASN1_STRING_set(value, host.data(), static_cast<int>(host.size())) != 1) {
      ASN1_STRING_free(value);
      return false;
    }
    GENERAL_NAME_set0_value(name, is_ip ? GEN_IPADD : GEN_DNS, value);
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) ==
         1;
}

// Two certificates of one issuer must never have the same serial number: clients compare by it.
bool set_random_serial(X509* certificate) {
  const BignumPtr number(BN_new());
  return number && BN_rand(number.get(), 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

// Sets everything except names, extensions and signature.
std::optional<Pair> begin_certificate(Time now, std::chrono::seconds life) {
  Pair pair{X509Ptr(X509_new()), PkeyPtr(EVP_EC_gen("P-256"))};
  X509* certificate = pair.certificate.get();
  if (!pair.certificate || !pair.key || X509_set_version(certificate, X509_VERSION_3) != 1 ||
      !set_random_serial(certificate) || X509_set_pubkey(certificate, pair.key.get()) != 1) {
    return std::nullopt;
  }
  const Time from = now + (-kClockSkew);
  const Time until = now + life;
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), from.seconds()) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), until.seconds()) == nullptr) {
    return std::nullopt;
  }
  return pair;
}

std::optional<Pair> make_ca(Time now) {
  auto pair = begin_certificate(now, kCaLife);
  if (!pair) return std::nullopt;
  X509* ca = pair->certificate.get();
  X509_NAME* name = X509_get_subject_name(ca);
  if (!add_name(name, "O", kOrganization) || !add_name(name, "CN", kCaName) ||
      X509_set_issuer_name(ca, name) != 1 ||
      !add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature") ||
      !add_extension(ca, ca, NID_subject_key_identifier, "hash") ||
      X509_sign(ca, pair->key.get(), EVP_sha256()) == 0) {
    return std::nullopt;
  }
  return pair;
}

std::optional<Pair> make_server(const std::vector<std::string>& hosts, Time now, const Pair& ca) {
  auto pair = begin_certificate(now, kServerLife);
  if (!pair) return std::nullopt;
  X509* certificate = pair->certificate.get();
  X509* issuer = ca.certificate.get();
  // A common name holds 64 characters at most; clients check the alternative names.
  const std::string common_name = hosts.empty() ? std::string() : hosts.front().substr(0, 64);
  if (!add_name(X509_get_subject_name(certificate), "CN", common_name) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) != 1 ||
      !add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth") ||
      !add_extension(certificate, issuer, NID_subject_key_identifier, "hash") ||
      !add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always") ||
      !add_subject_names(certificate, hosts) ||
      X509_sign(certificate, ca.key.get(), EVP_sha256()) == 0) {
    return std::nullopt;
  }
  return pair;
}

std::string pem_of(X509* certificate) {
  const BioPtr out = memory_bio();
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1) return {};
  return text_of(out.get());
}

Secret<std::string> pem_of(EVP_PKEY* key) {
  const BioPtr out = memory_bio();
  if (!out ||
      PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return {};
  }
  return Secret<std::string>(text_of(out.get()));
}

X509Ptr read_certificate(const std::string& pem) {
  const BioPtr in = reading_bio(pem);
  X509Ptr certificate(in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  return certificate;
}

PkeyPtr read_key(const Secret<std::string>& pem) {
  const BioPtr in = reading_bio(pem.reveal());
  // Without a callback OpenSSL would ask the terminal for the passphrase of an encrypted key.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  PkeyPtr key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  ERR_clear_error();
  return key;
}

bool is_valid_at(X509* certificate, Time time) {
  std::time_t seconds = static_cast<std::time_t>(time.seconds());
  return X509_cmp_time(X509_get0_notBefore(certificate), &seconds) < 0 &&
         X509_cmp_time(X509_get0_notAfter(certificate), &seconds) > 0;
}

bool belongs_to(X509* certificate, EVP_PKEY* key) {
  const bool matches = X509_check_private_key(certificate, key) == 1;
  ERR_clear_error();
  return matches;
}

bool is_signed_by(X509* certificate, X509* ca) {
  const bool is_signed = X509_verify(certificate, X509_get0_pubkey(ca)) == 1;
  ERR_clear_error();
  return is_signed;
}

bool names_host(X509* certificate, const std::string& host) {
  if (is_ip_address(host)) return X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
  return X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1;
}

// Returns the CA of `bundle`, if it has its key and is valid for long enough to sign again.
std::optional<Pair> usable_ca(const CertificateBundle& bundle, Time now) {
  Pair ca{read_certificate(bundle.ca_certificate), read_key(bundle.ca_key)};
  if (!ca.certificate || !ca.key || !belongs_to(ca.certificate.get(), ca.key.get()))
    return std::nullopt;
  if (X509_check_ca(ca.certificate.get()) == 0) return std::nullopt;
  if (!is_valid_at(ca.certificate.get(), now) || !is_valid_at(ca.certificate.get(), now + kAhead)) {
    return std::nullopt;
  }
  return ca;
}

}  // namespace

Result<CertificateBundle> make_certificates(const std::vector<std::string>& hosts, Time now,
                                            const CertificateBundle* previous) {
  auto ca = previous == nullptr ? std::nullopt : usable_ca(*previous, now);
  const bool is_new_ca = !ca;
  if (!ca) ca = make_ca(now);
  auto server = ca ? make_server(hosts, now, *ca) : std::nullopt;
  if (!server) {
    return openssl_error(
        fmt::format("cannot make a certificate for {}", hosts.empty() ? "" : hosts.front()));
  }
  CertificateBundle bundle;
  bundle.ca_certificate = pem_of(ca->certificate.get());
  bundle.ca_key = pem_of(ca->key.get());
  bundle.certificate = pem_of(server->certificate.get());
  bundle.key = pem_of(server->key.get());
  if (is_new_ca && previous != nullptr) {
    const X509Ptr old = read_certificate(previous->ca_certificate);
    if (old && is_valid_at(old.get(), now)) bundle.ca_certificate += pem_of(old.get());
  }
  return bundle;
}

std::string reason_not_to_serve(const CertificateBundle& bundle,
                                const std::vector<std::string>& hosts, Time now) {
  const X509Ptr ca = read_certificate(bundle.ca_certificate);
  const X509Ptr certificate = read_certificate(bundle.certificate);
  const PkeyPtr key = read_key(bundle.key);
  if (!ca) return "the CA certificate cannot be read";
  if (!certificate) return "the server certificate cannot be read";
  if (!key) return "the server key cannot be read";
  if (!belongs_to(certificate.get(), key.get())) return "the server key is not the certificate's";
  if (!is_signed_by(certificate.get(), ca.get()))
    return "the CA has not signed the server certificate";
  if (!is_valid_at(ca.get(), now)) return "the CA is not valid now";
  if (!is_valid_at(certificate.get(), now)) return "the server certificate is not valid now";
  for (const std::string& host : hosts) {
    if (!names_host(certificate.get(), host))
      return fmt::format("the server certificate does not name {}", host);
  }
  return {};
}

std::string reason_to_renew(const CertificateBundle& bundle, const std::vector<std::string>& hosts,
                            Time now) {
  std::string reason = reason_not_to_serve(bundle, hosts, now);
  if (!reason.empty()) return reason;
  if (!usable_ca(bundle, now)) return "the CA ends within 90 days, or its key is not usable";
  if (!is_valid_at(read_certificate(bundle.certificate).get(), now + kAhead))
    return "the server certificate ends within 90 days";
  return {};
}

std::optional<Time> expiry_of(const std::string& certificate_pem) {
  const X509Ptr certificate = read_certificate(certificate_pem);
  std::tm end{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1)
    return std::nullopt;
  return Time::from_seconds(timegm(&end));
}

bool has_usable_ca(const CertificateBundle& bundle, Time now) {
  return usable_ca(bundle, now).has_value();
}

Result<CertificateBundle> read_certificate_secret(const Json& secret, bool needs_ca) {
  const auto value = [&](const char* name) {
    const Json* text = secret.find_path({"data", name});
    const auto decoded =
        text != nullptr && text->is_string() ? base64_decode(text->as_string()) : std::nullopt;
    return decoded.value_or("");
  };
  CertificateBundle bundle;
  bundle.ca_certificate = value("ca.crt");
  bundle.ca_key = Secret<std::string>(value("ca.key"));
  bundle.certificate = value("tls.crt");
  bundle.key = Secret<std::string>(value("tls.key"));
  const char* missing = bundle.certificate.empty()                  ? "tls.crt"
                        : bundle.key.reveal().empty()               ? "tls.key"
                        : needs_ca && bundle.ca_certificate.empty() ? "ca.crt"
                                                                    : nullptr;
  if (missing != nullptr) return fail(ErrorCode::kInvalid, "there is no data \"{}\"", missing);
  return bundle;
}

Json certificate_secret_data(const CertificateBundle& bundle) {
  return Json::object({{"ca.crt", base64_encode(bundle.ca_certificate)},
                       {"ca.key", base64_encode(bundle.ca_key.reveal())},
                       {"tls.crt", base64_encode(bundle.certificate)},
                       {"tls.key", base64_encode(bundle.key.reveal())}});
}

}  // namespace kube
