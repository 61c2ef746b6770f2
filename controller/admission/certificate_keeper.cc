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
    const auto looked = co_await look();
    note(looked);
    // Leadership may have come while we looked.
    if (was_leader != is_leader_) continue;
    co_await wake_.wait_for(client_.clock(),
                            has_certificate() ? options_.poll : options_.first_poll);
  }
}

Task<void> CertificateKeeper::wait_for_certificate() {
  while (!has_certificate()) co_await has_first_.wait();
}

// Somebody else's Secret may stay away for hours: that is worth a word, and one again from time to
// time.
void CertificateKeeper::note(const Result<void>& looked) {
  const std::string why = looked ? std::string() : looked.error().message;
  const auto now = client_.clock().steady();
  if (!why.empty() && (why != complaint_ || now - complained_at_ >= options_.reminder)) {
    log_.warn("certificates", {{"why", why}});
    complained_at_ = now;
  }
  complaint_ = why;
}

Result<void> CertificateKeeper::look_at_own() {
  const auto now = client_.clock().now();
  const std::string reason =
      own_ ? reason_to_renew(*own_, options_.hosts, now) : "this process has none yet";
  if (!reason.empty()) {
    auto made = make_certificates(options_.hosts, now, own_ ? &*own_ : nullptr);
    if (!made) return tl::unexpected(made.error());
    log_.info("made certificates", {{"why", reason}});
    own_ = std::move(*made);
  }
  return hand_over(*own_);
}

Task<Result<void>> CertificateKeeper::look() {
  if (options_.secret.name.empty()) co_return look_at_own();
  const std::string what = "Secret " + options_.secret.to_string();
  const bool may_write = is_leader_ && options_.is_made_here;
  auto secret = co_await client_.get(kube::kSecrets, options_.secret);
  const bool is_absent = !secret && secret.error().code == kube::ErrorCode::kNotFound;
  // Ours to make: then one that is not there is as good as an empty one.
  if (!secret && !(is_absent && options_.is_made_here))
    co_return tl::unexpected(secret.error().at(what));
  Json stored = secret ? std::move(*secret) : Json();
  auto bundle = read_certificate_secret(stored, options_.is_made_here);
  if (!bundle && !options_.is_made_here) co_return tl::unexpected(bundle.error().at(what));
  const auto now = client_.clock().now();
  std::string reason =
      bundle ? reason_to_renew(*bundle, options_.hosts, now) : "the Secret holds none";
  if (may_write && !reason.empty()) {
    // Storing the new one may fail for long: what still serves is not held back for that.
    if (bundle && reason_not_to_serve(*bundle, options_.hosts, now).empty())
      (void)hand_over(*bundle);
    co_return co_await renew(std::move(stored), std::move(bundle), std::move(reason));
  }
  // Without leave to write, even certificates that are about to end are better than none. Where
  // there are none the leader will make them.
  co_return bundle ? hand_over(*bundle) : Result<void>();
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
    // Whoever changed the Secret meanwhile is read first: two leaders in a row must not undo each
    // other.
    metadata.set("resourceVersion", kube::ObjectMeta::of(secret).resource_version);
    object.set("metadata", std::move(metadata)).set("data", certificate_secret_data(*made));
    written = co_await client_.merge_patch(kube::kSecrets, options_.secret, std::move(object));
  }
  if (!written)
    co_return tl::unexpected(written.error().at("Secret " + options_.secret.to_string()));
  log_.info("made certificates", {{"secret", options_.secret.to_string()}, {"why", reason}});
  co_return hand_over(*made);
}

Result<void> CertificateKeeper::hand_over(const CertificateBundle& bundle) {
  std::string identity = bundle.ca_certificate + bundle.certificate;
  if (identity == used_) return {};
  auto used = use_(bundle);
  if (!used) return used;
  used_ = std::move(identity);
  has_first_.notify();
  return used;
}

}  // namespace trainer
