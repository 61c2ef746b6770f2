#include "controller/admission/certificate_keeper.hh"

#include "controller/core/stores.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

CertificateKeeper::CertificateKeeper(kube::asio::io_context& io, kube::ApiClient& client,
                                     const Log& log, CertificateOptions options, Use use)
    : client_(client),
      log_(log),
      options_(std::move(options)),
      use_(std::move(use)),
      wake_(io.get_executor()) {}

void CertificateKeeper::lead() {
  is_leader_ = true;
  wake_.ring();
}

Task<void> CertificateKeeper::run() {
  while (true) {
    const bool was_leader = is_leader_;
    const auto looked = co_await look();
    if (!looked) log_.warn("certificates", {{"why", looked.error().message}});
    // Leadership may have come while we looked.
    if (was_leader != is_leader_) continue;
    co_await wake_.wait_for(client_.clock(),
                            looked && has_certificate() ? options_.poll : options_.first_poll);
  }
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
  const bool may_write = is_leader_ && options_.is_made_here;
  auto secret = co_await client_.get(kSecrets, options_.secret);
  if (!secret && secret.error().code != kube::ErrorCode::kNotFound) {
    co_return tl::unexpected(secret.error().at("Secret " + options_.secret.to_string()));
  }
  Json stored = secret ? std::move(*secret) : Json();
  auto bundle = read_certificate_secret(stored);
  std::string reason = "the Secret holds none";
  if (bundle) reason = reason_to_renew(*bundle, options_.hosts, client_.clock().now());
  if (!reason.empty() && may_write) {
    co_return co_await renew(std::move(stored), std::move(bundle), std::move(reason));
  }
  // Without leave to write, even certificates that are about to end are better than none.
  if (bundle) co_return hand_over(*bundle);
  co_return Result<void>();
}

Task<Result<void>> CertificateKeeper::renew(Json secret, std::optional<CertificateBundle> previous,
                                            std::string reason) {
  auto made =
      make_certificates(options_.hosts, client_.clock().now(), previous ? &*previous : nullptr);
  if (!made) co_return tl::unexpected(made.error());
  Json metadata = Json::object();
  Json object = Json::object();
  Result<Json> written;
  if (secret.is_null()) {
    metadata.set("name", options_.secret.name).set("namespace", options_.secret.ns);
    object.set("apiVersion", "v1").set("kind", "Secret").set("metadata", std::move(metadata));
    object.set("data", certificate_secret_data(*made));
    written = co_await client_.create(kSecrets, std::move(object));
  } else {
    // Whoever changed the Secret meanwhile is read first: two leaders in a row must not undo each
    // other.
    metadata.set("resourceVersion", kube::ObjectMeta::of(secret).resource_version);
    object.set("metadata", std::move(metadata)).set("data", certificate_secret_data(*made));
    written = co_await client_.merge_patch(kSecrets, options_.secret, std::move(object));
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
  if (used) used_ = std::move(identity);
  return used;
}

}  // namespace trainer
