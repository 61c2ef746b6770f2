// Pods of local mode prove by tokens who they are, like on a cluster: the node asks for them, and a
// TokenReview knows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"
#include "kube/server/object_store.hh"
#include "kube/server/request.hh"

namespace trainer {

// A token is a JWT, bound to a pod and to audiences. The API of local mode itself accepts none of
// them. They are signed with a key that follows from the API's own token, so that a daemon that
// starts again knows those of its pods. Guarantees: a token counts only until it expires, and only
// while its pod exists. Concurrency: the thread of `store`.
class PodTokens {
 public:
  // `store` outlives this.
  PodTokens(const kube::Secret<std::string>& api_token, const kube::server::ObjectStore& store);

  // Returns the ServiceAccount that a request asks a token for; nullopt for any other request.
  // There need be no ServiceAccount of that name.
  static std::optional<kube::ObjectKey> account_of(std::string_view target);
  // Answers a TokenRequest (authentication.k8s.io/v1), which must name a pod of that account.
  kube::server::Response issue(const kube::ObjectKey& account, const kube::Json& request,
                               kube::Time now) const;
  // Returns the status of a TokenReview; nullopt if the token was not made with this key.
  std::optional<kube::Json> review(const kube::Json& spec, kube::Time now) const;

 private:
  std::string sign(std::string_view text) const;
  // Returns the claims of a token with a valid signature.
  std::optional<kube::Json> read(std::string_view token) const;
  // Returns why these claims do not count; empty if they do.
  std::string problem_of(const kube::Json& claims, kube::Time now) const;

  const kube::Secret<std::string> key_;
  const kube::server::ObjectStore& store_;
};

}  // namespace trainer
