// OpenSSL's objects have smart pointers here, and its last error becomes a text.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "kube/model/error.hh"

namespace kube {

template <auto kFree>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using PkeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;

inline BioPtr memory_bio() {
  return BioPtr(BIO_new(BIO_s_mem()));
}
// The text must outlive the BIO.
inline BioPtr reading_bio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

// Returns kInternal with `what`, and the newest entry of OpenSSL's error queue, which is emptied.
inline tl::unexpected<Error> openssl_error(std::string_view what) {
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_peek_last_error(); code != 0) {
    ERR_error_string_n(code, reason, sizeof reason);
  }
  ERR_clear_error();
  return fail(ErrorCode::kInternal, std::string(what) + ": " + reason);
}

}  // namespace kube
