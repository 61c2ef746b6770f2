// This memory knows which PersistentVolumeClaims of a JobSet exist.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>

#include "api/jobset.hh"
#include "kube/client/api_client.hh"
#include "kube/model/plan.hh"

namespace trainer {

// Claims are not watched. If nothing is known about a JobSet's claims, they are read by name. A
// claim that is being deleted does not count, since no pod can mount it. Concurrency: the control
// loops' thread.
class KnownClaims {
 public:
  // `is_current` returns whether a JobSet of this key and uid still exists. `failed_pods` returns
  // the number of failed pods of its Jobs.
  KnownClaims(kube::ApiClient& client,
              std::function<bool(const kube::ObjectKey& key, const std::string& uid)> is_current,
              std::function<std::int64_t(const JobSet& jobset)> failed_pods)
      : client_(client), is_current_(std::move(is_current)), failed_pods_(std::move(failed_pods)) {}

  // Reads the claims that are not known. Errors are the API server's.
  kube::Task<kube::Result<void>> read(const JobSet& jobset);
  bool has(const std::string& uid) const { return claims_.contains(uid); }
  std::set<std::string> names(const std::string& uid) const;
  // Adds the claims that a plan has created.
  void add(const JobSet& jobset, const std::set<std::string>& created);
  void forget(const std::string& uid) { claims_.erase(uid); }
  // Forgets the claims if more pods have failed since they were read: the Job controller replaces
  // failed pods by itself, and a claim that is being deleted ends with its last pod.
  void forget_after_failures(const JobSet& jobset);

  static std::set<std::string> created_by(const kube::Plan& plan);

 private:
  // These are the claims that were found or created, and the number of pods that had failed at that
  // time.
  struct Claims {
    std::set<std::string> names;
    std::int64_t failed_pods = 0;
  };
  kube::ApiClient& client_;
  std::function<bool(const kube::ObjectKey& key, const std::string& uid)> is_current_;
  std::function<std::int64_t(const JobSet& jobset)> failed_pods_;
  std::unordered_map<std::string, Claims> claims_;  // by JobSet uid
};

}  // namespace trainer
