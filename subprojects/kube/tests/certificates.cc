#include "kube/tests/certificates.hh"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace kube {

namespace {

template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* what) const { Free(what); }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION, X509_EXTENSION_free>>;
struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioDeleter>;

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  X509_add_ext(certificate, extension.get(), -1);
}

}  // namespace

Certificate make_certificate(const std::string& dns_name, const std::string& ip,
                             const Certificate* issuer, bool has_names) {
  const Key key(EVP_EC_gen("P-256"));
  const X509Pointer certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3'600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(dns_name.c_str()), -1, -1, 0);
  Key signing;
  X509Pointer signer;
  if (issuer != nullptr) {
    const Bio of_issuer(BIO_new_mem_buf(issuer->certificate.data(), -1));
    signer.reset(PEM_read_bio_X509(of_issuer.get(), nullptr, nullptr, nullptr));
    const Bio key_of_issuer(BIO_new_mem_buf(issuer->key.data(), -1));
    signing.reset(PEM_read_bio_PrivateKey(key_of_issuer.get(), nullptr, nullptr, nullptr));
  }
  X509_set_issuer_name(certificate.get(), signer ? X509_get_subject_name(signer.get()) : name);
  add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  if (has_names)
    add_extension(certificate.get(), NID_subject_alt_name,
                  "DNS:" + dns_name + (ip.empty() ? "" : ",IP:" + ip));
  X509_sign(certificate.get(), signing ? signing.get() : key.get(), EVP_sha256());

  const Bio certificate_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  const Bio key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  Certificate made;
  made.certificate = text_of(certificate_text);
  made.key = text_of(key_text);
  return made;
}

const Certificate& test_certificate() {
  static const Certificate made = make_certificate("test.local", "127.0.0.1");
  return made;
}

}  // namespace kube
