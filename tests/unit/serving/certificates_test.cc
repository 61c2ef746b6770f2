#include "kube/client/certificates.hh"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

#include "kube/client/openssl.hh"
#include "kube/model/digest.hh"
#include "kube/model/json.hh"
#include "tests/support/catch.hh"

using namespace kube;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::hours kDay = 24h;
const std::vector<std::string> kHosts = {"webhook.kubeflow-system.svc"};
const Time kNone = *Time::parse("2026-11-21T10:00:00Z");

X509Ptr read_pem(const std::string& pem) {
  const BioPtr in = reading_bio(pem);
  return X509Ptr(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

// Verifies like a TLS client of the server: chain, purpose, name and time.
bool is_trusted(const CertificateBundle& bundle, const std::string& certificate_pem,
                const std::string& host, Time when) {
  using StorePtr = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
  using ContextPtr = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;
  const StorePtr store(X509_STORE_new());
  const BioPtr in = reading_bio(bundle.ca_certificate);
  while (const X509Ptr ca{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), ca.get());
  }
  const X509Ptr certificate = read_pem(certificate_pem);
  const ContextPtr context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, static_cast<std::time_t>(when.seconds()));
  X509_VERIFY_PARAM_set_purpose(rules, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT);
  const bool is_ip = host.find_first_not_of("0123456789.:abcdef") == std::string::npos;
  if (is_ip) {
    X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size());
  }
  const bool is_good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return is_good;
}

CertificateBundle make(Time now, const CertificateBundle* previous = nullptr) {
  auto made = make_certificates(kHosts, now, previous);
  REQUIRE(made);
  return *made;
}

}  // namespace

TEST_CASE("a TLS client trusts the certificates, by host name, for a year") {
  const CertificateBundle bundle = make(kNone);
  CHECK(is_trusted(bundle, bundle.certificate, kHosts[0], kNone));
  CHECK(is_trusted(bundle, bundle.certificate, kHosts[0], kNone + (-59min)));
  CHECK(is_trusted(bundle, bundle.certificate, kHosts[0], kNone + 364 * kDay));
  CHECK_FALSE(is_trusted(bundle, bundle.certificate, kHosts[0], kNone + 366 * kDay));
  CHECK_FALSE(is_trusted(bundle, bundle.certificate, "elsewhere.kubeflow-system.svc", kNone));
  CHECK_FALSE(is_trusted(make(kNone), bundle.certificate, kHosts[0], kNone));
}

TEST_CASE("addresses are named as addresses") {
  const auto bundle = make_certificates({"10.88.0.1", "fd00::1", "localhost"}, kNone);
  REQUIRE(bundle);
  CHECK(is_trusted(*bundle, bundle->certificate, "10.88.0.1", kNone));
  CHECK(is_trusted(*bundle, bundle->certificate, "fd00::1", kNone));
  CHECK(is_trusted(*bundle, bundle->certificate, "localhost", kNone));
  CHECK_FALSE(is_trusted(*bundle, bundle->certificate, "10.88.0.2", kNone));
  CHECK(reason_to_renew(*bundle, {"10.88.0.1", "localhost"}, kNone).empty());
}

TEST_CASE("renewal comes ninety days ahead, and says why") {
  const CertificateBundle bundle = make(kNone);
  const CertificateBundle other = make(kNone);
  CHECK(reason_to_renew(bundle, kHosts, kNone) == "");
  CHECK(reason_to_renew(bundle, kHosts, kNone + 274 * kDay) == "");
  CHECK(reason_to_renew(bundle, kHosts, kNone + 276 * kDay) ==
        "the server certificate ends within 90 days");
  CHECK(reason_to_renew(bundle, kHosts, kNone + 366 * kDay) ==
        "the server certificate is not valid now");
  CHECK(reason_to_renew(bundle, kHosts, kNone + (-2 * kDay)) == "the CA is not valid now");
  CHECK(reason_to_renew(bundle, {"new.name.svc"}, kNone) ==
        "the server certificate does not name new.name.svc");

  CertificateBundle mixed = bundle;
  mixed.key = other.key;
  CHECK(reason_to_renew(mixed, kHosts, kNone) == "the server key is not the certificate's");
  mixed = bundle;
  mixed.ca_certificate = other.ca_certificate;
  CHECK(reason_to_renew(mixed, kHosts, kNone) == "the CA has not signed the server certificate");
  mixed = bundle;
  mixed.ca_key = Secret<std::string>("rubbish");
  CHECK(reason_to_renew(mixed, kHosts, kNone) ==
        "the CA ends within 90 days, or its key is not usable");
  mixed.certificate = "-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n";
  CHECK(reason_to_renew(mixed, kHosts, kNone) == "the server certificate cannot be read");
}

TEST_CASE("certificates to renew are valid until they expire") {
  const CertificateBundle bundle = make(kNone);
  CHECK(reason_not_to_serve(bundle, kHosts, kNone + 276 * kDay) == "");
  CHECK(reason_not_to_serve(bundle, kHosts, kNone + 366 * kDay) ==
        "the server certificate is not valid now");
  CHECK(reason_not_to_serve(bundle, {"new.name.svc"}, kNone) ==
        "the server certificate does not name new.name.svc");
  CertificateBundle without_ca_key = bundle;
  without_ca_key.ca_key = Secret<std::string>();
  CHECK(reason_not_to_serve(without_ca_key, kHosts, kNone) == "");
}

TEST_CASE("a renewed server certificate keeps the CA while that lasts") {
  const CertificateBundle first = make(kNone);
  const Time later = kNone + 300 * kDay;
  const CertificateBundle second = make(later, &first);
  CHECK(second.ca_certificate == first.ca_certificate);
  CHECK(second.certificate != first.certificate);
  CHECK(is_trusted(first, second.certificate, kHosts[0], later));
  CHECK(reason_to_renew(second, kHosts, later) == "");
}

TEST_CASE(
    "a new CA is announced together with the old one, so that servers may change one by one") {
  const CertificateBundle first = make(kNone);
  // A CA that ends within 90 days, but has not ended.
  const Time late = kNone + 3600 * kDay;
  const CertificateBundle old = make(late + (-300 * kDay), &first);
  const CertificateBundle fresh = make(late, &old);
  CHECK(is_trusted(fresh, fresh.certificate, kHosts[0], late));
  CHECK(is_trusted(fresh, old.certificate, kHosts[0], late));
  CHECK_FALSE(is_trusted(old, fresh.certificate, kHosts[0], late));
  CHECK(reason_to_renew(fresh, kHosts, late) == "");
  // The old one is dropped when it has ended.
  const Time end = late + 3600 * kDay;
  const CertificateBundle last = make(end, &fresh);
  CHECK(last.ca_certificate.find("BEGIN CERTIFICATE", 30) != std::string::npos);
  CHECK_FALSE(is_trusted(last, old.certificate, kHosts[0], end));
}

TEST_CASE("the Secret holds the bundle under upstream's keys") {
  const CertificateBundle bundle = make(kNone);
  Json secret = Json::object({{"data", certificate_secret_data(bundle)}});
  const auto read = read_certificate_secret(secret, true);
  REQUIRE(read);
  CHECK(read->trusted() == bundle.ca_certificate);
  CHECK(read->ca_certificate == bundle.ca_certificate);
  CHECK(read->ca_key.reveal() == bundle.ca_key.reveal());
  CHECK(read->certificate == bundle.certificate);
  CHECK(read->key.reveal() == bundle.key.reveal());

  Json without_ca_key = secret;
  without_ca_key["data"].erase("ca.key");
  CHECK(read_certificate_secret(without_ca_key, true));
  for (const char* name : {"ca.crt", "tls.crt", "tls.key"}) {
    CAPTURE(name);
    Json incomplete = secret;
    incomplete["data"].erase(name);
    const auto refused = read_certificate_secret(incomplete, true);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "there is no data \"" + std::string(name) + "\"");
    incomplete["data"].set(name, "no base64!");
    CHECK_FALSE(read_certificate_secret(incomplete, true));
    incomplete["data"].set(name, 7);
    CHECK_FALSE(read_certificate_secret(incomplete, true));
  }
  CHECK_FALSE(read_certificate_secret(Json(), true));
  CHECK_FALSE(read_certificate_secret(Json::object({{"data", "text"}}), false));
}

TEST_CASE("a Secret that another client fills may have no CA: then the certificate is trusted") {
  Json secret = Json::object({{"data", certificate_secret_data(make(kNone))}});
  secret["data"].erase("ca.crt");
  secret["data"].erase("ca.key");
  const auto read = read_certificate_secret(secret, false);
  REQUIRE(read);
  CHECK(read->ca_certificate.empty());
  CHECK(read->trusted() == read->certificate);
  secret["data"].erase("tls.key");
  CHECK_FALSE(read_certificate_secret(secret, false));
}
