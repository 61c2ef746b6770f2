#include "controller/admission/certificate_keeper.hh"

#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

CertificateKeeper::CertificateKeeper(kube::asio::io_context& io, kube::ApiClient& client,
                                     const kube::Log& log, CertificateOptions options, Use use)
    : client_(client),
      log_(log),
      options_(std::move(options)),
      use_(std::move(use)),
      wake_(io.get_executor()),
      has_first_(io.get_executor()) {}

void CertificateKeeper::lead() {
  is_leader_ = true;
  wake_.notify();
}

Task<void> CertificateKeeper::run() {
  while (true) {
    const bool was_leader = is_leader_;
    const auto synced = co_await sync();
    log_error(synced);
    // This process may have become the leader meanwhile.
    if (was_leader != is_leader_) continue;
    co_await wake_.wait_for(client_.clock(),
                            has_certificate() ? options_.poll : options_.first_poll);
  }
}

Task<void> CertificateKeeper::wait_for_certificate() {
  while (!has_certificate()) co_await has_first_.wait();
}

// A Secret that another client fills may be missing for hours: logged again after `reminder`.
void CertificateKeeper::log_error(const Result<void>& synced) {
  const std::string why = synced ? std::string() : synced.error().message;
  const auto now = client_.clock().steady();
  if (!why.empty() && (why != last_error_ || now - error_logged_at_ >= options_.reminder)) {
    log_.warn("certificates", {{"why", why}});
    error_logged_at_ = now;
  }
  last_error_ = why;
}

Task<Result<void>> CertificateKeeper::sync_own() {
  const auto now = client_.clock().now();
  const std::string reason =
      own_ ? reason_to_renew(*own_, options_.hosts, now) : "this process has none yet";
  if (!reason.empty()) {
    auto made = make_certificates(options_.hosts, now, own_ ? &*own_ : nullptr);
    if (!made) co_return tl::unexpected(made.error());
    log_.info("made certificates", {{"why", reason}});
    own_ = std::move(*made);
  }
  co_return co_await deliver(*own_);
}

Task<Result<void>> CertificateKeeper::sync() {
  if (options_.secret.name.empty()) co_return co_await sync_own();
  const std::string what = "Secret " + options_.secret.to_string();
  const bool may_write = is_leader_ && options_.is_made_here;
  auto secret = co_await client_.get(kube::kSecrets, options_.secret);
  const bool is_absent = !secret && secret.error().code == kube::ErrorCode::kNotFound;
  // Where this process makes the certificates, a missing Secret counts as an empty one.
  if (!secret && !(is_absent && options_.is_made_here))
    co_return tl::unexpected(secret.error().at(what));
  Json stored = secret ? std::move(*secret) : Json();
  auto bundle = read_certificate_secret(stored, options_.is_made_here);
  if (!bundle && !options_.is_made_here) co_return tl::unexpected(bundle.error().at(what));
  const auto now = client_.clock().now();
  std::string reason =
      bundle ? reason_to_renew(*bundle, options_.hosts, now) : "the Secret holds none";
  if (may_write && !reason.empty()) {
    // Storing the new bundle may fail for long. Until then a valid old one is served.
    if (bundle && reason_not_to_serve(*bundle, options_.hosts, now).empty())
      (void)co_await deliver(*bundle);
    co_return co_await renew(std::move(stored), std::move(bundle), std::move(reason));
  }
  // A process that may not write serves even certificates that expire soon. Where there are none,
  // the leader makes them.
  if (!bundle) co_return Result<void>();
  co_return co_await deliver(std::move(*bundle));
}

Task<Result<void>> CertificateKeeper::renew(Json secret, Result<CertificateBundle> previous,
                                            std::string reason) {
  auto made =
      make_certificates(options_.hosts, client_.clock().now(), previous ? &*previous : nullptr);
  if (!made) co_return tl::unexpected(made.error());
  Json metadata = Json::object();
  Json object = Json::object();
  Result<std::string> written;
  if (secret.is_null()) {
    metadata.set("name", options_.secret.name).set("namespace", options_.secret.ns);
    object.set("apiVersion", "v1").set("kind", "Secret").set("metadata", std::move(metadata));
    object.set("data", certificate_secret_data(*made));
    written = co_await client_.create(kube::kSecrets, std::move(object));
  } else {
    // Conditional on the version that was read: a former leader and the new one must not overwrite
    // each other's certificates.
    metadata.set("resourceVersion", kube::ObjectMeta::of(secret).resource_version);
    object.set("metadata", std::move(metadata)).set("data", certificate_secret_data(*made));
    written = co_await client_.merge_patch(kube::kSecrets, options_.secret, std::move(object));
  }
  if (!written)
    co_return tl::unexpected(written.error().at("Secret " + options_.secret.to_string()));
  log_.info("made certificates", {{"secret", options_.secret.to_string()}, {"why", reason}});
  co_return co_await deliver(std::move(*made));
}

Task<Result<void>> CertificateKeeper::deliver(CertificateBundle bundle) {
  std::string identity = bundle.ca_certificate + bundle.certificate;
  if (identity == delivered_) co_return Result<void>();
  auto used = co_await use_(std::move(bundle));
  if (!used) co_return used;
  delivered_ = std::move(identity);
  has_first_.notify();
  co_return used;
}

}  // namespace trainer
