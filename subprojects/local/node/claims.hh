// These are the directories of PersistentVolumeClaims.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::node {

// Guarantees: the directory of a claim has its uid as name, so another claim of the same name
// begins with an empty one; it stays until the claim is gone and no pod uses it. Concurrency: one
// thread.
class ClaimFolders {
 public:
  explicit ClaimFolders(const std::filesystem::path& state);

  std::filesystem::path folder_of(std::string_view uid) const { return volumes_ / uid; }
  // Returns the directory for names without a claim: NAMESPACE/NAME below it.
  const std::filesystem::path& unclaimed() const { return unclaimed_; }

  // Adds a claim that a watch reports, from its first list on. That list also moves the directories
  // that an earlier version of this program has kept under the names of claims.
  void add(const kube::Json& claim);
  void remove(const std::string& uid) { gone_.insert(folder_of(uid)); }
  void end_list();
  // Returns the directories that may be deleted. Each is returned once.
  std::vector<std::filesystem::path> take_unused(
      const std::function<bool(const std::filesystem::path& folder)>& is_used);

 private:
  const std::filesystem::path volumes_;
  const std::filesystem::path unclaimed_;
  std::set<std::filesystem::path> known_;  // the claims of the first list, until its end
  std::set<std::filesystem::path> gone_;   // the directories whose claims are gone
  bool is_listed_ = false;
};

}  // namespace trainer::node
