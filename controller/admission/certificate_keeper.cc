#include "controller/admission/certificate_keeper.hh"

#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

CertificateKeeper::CertificateKeeper(kube::asio::io_context& io, kube::ApiClient& client,
                                     const kube::Log& log, CertificateOptions options, Use use,
                                     Trust trust)
    : client_(client),
      log_(log),
      options_(std::move(options)),
      use_(std::move(use)),
      trust_(std::move(trust)),
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

// A Secret that another client fills may be missing for hours, so the error is logged again after
// `reminder`.
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
      last_ ? kube::reason_to_renew(*last_, options_.hosts, now) : "this process has none yet";
  if (!reason.empty()) {
    auto made = kube::make_certificates(options_.hosts, now, last_ ? &*last_ : nullptr);
    if (!made) co_return tl::unexpected(made.error());
    log_.info("made certificates", {{"why", reason}});
    last_ = std::move(*made);
  }
  co_return co_await deliver(*last_);
}

Task<Result<void>> CertificateKeeper::sync() {
  if (options_.secret.name.empty()) co_return co_await sync_own();
  const std::string what = "Secret " + options_.secret.to_string();
  const bool may_write = is_leader_ && options_.is_made_here;
  auto secret = co_await client_.get(kube::kSecrets, options_.secret);
  const bool is_absent = !secret && secret.error().code == kube::ErrorCode::kNotFound;
  // If this process makes the certificates, a missing Secret counts as an empty one.
  if (!secret && !(is_absent && options_.is_made_here))
    co_return tl::unexpected(secret.error().at(what));
  Json stored = secret ? std::move(*secret) : Json();
  auto bundle = kube::read_certificate_secret(stored, options_.is_made_here);
  if (!bundle && !options_.is_made_here) co_return tl::unexpected(bundle.error().at(what));
  const bool is_lost = !bundle && last_;
  if (is_lost) bundle = *last_;
  std::string reason = bundle
                           ? kube::reason_to_renew(*bundle, options_.hosts, client_.clock().now())
                           : "the Secret holds none";
  if (may_write && !reason.empty())
    co_return co_await renew(std::move(stored), std::move(bundle), std::move(reason));
  next_.reset();
  if (may_write && is_lost)
    co_return co_await store(std::move(stored), std::move(*bundle), "the Secret had lost them");
  // A process that may not write serves even certificates that expire soon. If there are none, the
  // leader makes them.
  if (!bundle) co_return Result<void>();
  co_return co_await deliver(std::move(*bundle));
}

Task<Result<void>> CertificateKeeper::renew(Json secret, Result<kube::CertificateBundle> previous,
                                            std::string reason) {
  const auto now = client_.clock().now();
  const auto steady = client_.clock().steady();
  const bool is_served =
      previous && kube::reason_not_to_serve(*previous, options_.hosts, now).empty();
  // Storing the new bundle may fail for a long time. Until then a valid old one is served.
  if (is_served) (void)co_await deliver(*previous);
  if (!next_ || !kube::reason_to_renew(*next_, options_.hosts, now).empty()) {
    auto made = kube::make_certificates(options_.hosts, now, previous ? &*previous : nullptr);
    if (!made) co_return tl::unexpected(made.error());
    next_ = std::move(*made);
    next_from_ = steady;
    if (is_served && !kube::has_usable_ca(*previous, now)) {
      next_from_ += options_.trust_ahead;
      log_.info("made a CA", {{"why", reason}, {"then", "it is trusted first, and then used"}});
      trust_(next_->ca_certificate);
    }
  }
  if (is_served && steady < next_from_) co_return Result<void>();
  auto stored = co_await store(std::move(secret), *next_, std::move(reason));
  if (stored) next_.reset();
  co_return stored;
}

// Writes the Secret and delivers its contents from now on.
Task<Result<void>> CertificateKeeper::store(Json secret, kube::CertificateBundle bundle,
                                            std::string reason) {
  Json metadata = Json::object();
  Json object = Json::object();
  Result<std::string> written;
  if (secret.is_null()) {
    metadata.set("name", options_.secret.name).set("namespace", options_.secret.ns);
    object.set("apiVersion", "v1").set("kind", "Secret").set("metadata", std::move(metadata));
    object.set("data", kube::certificate_secret_data(bundle));
    written = co_await client_.create(kube::kSecrets, std::move(object));
  } else {
    // The write is conditional on the version that was read: a former leader and the new one must
    // not overwrite each other's certificates.
    metadata.set("resourceVersion", kube::ObjectMeta::of(secret).resource_version);
    object.set("metadata", std::move(metadata)).set("data", kube::certificate_secret_data(bundle));
    written = co_await client_.merge_patch(kube::kSecrets, options_.secret, std::move(object));
    // The Training Operator's ClusterRole allows updates, and no patches.
    if (!written && written.error().code == kube::ErrorCode::kForbidden)
      written = co_await client_.replace(
          kube::kSecrets, options_.secret,
          std::move(secret.set("data", kube::certificate_secret_data(bundle))));
  }
  if (!written)
    co_return tl::unexpected(written.error().at("Secret " + options_.secret.to_string()));
  log_.info("stored certificates", {{"secret", options_.secret.to_string()}, {"why", reason}});
  co_return co_await deliver(std::move(bundle));
}

Task<Result<void>> CertificateKeeper::deliver(kube::CertificateBundle bundle) {
  std::string identity = bundle.ca_certificate + bundle.certificate;
  if (identity == delivered_) co_return Result<void>();
  auto used = co_await use_(bundle);
  if (!used) co_return used;
  delivered_ = std::move(identity);
  last_ = std::move(bundle);
  has_first_.notify();
  co_return used;
}

}  // namespace trainer
