#include "local/node/claims.hh"

#include <system_error>
#include <utility>

#include "kube/model/meta.hh"
#include "local/node/files.hh"

namespace trainer::node {

namespace fs = std::filesystem;

ClaimFolders::ClaimFolders(const fs::path& state)
    : volumes_(state / "volumes"), unclaimed_(state / "claims") {}

void ClaimFolders::add(const kube::Json& claim) {
  if (is_listed_) return;
  const auto meta = kube::ObjectMeta::of(claim);
  const fs::path folder = folder_of(meta.uid);
  std::error_code error;
  const auto of_namespace = child_of(unclaimed_, meta.ns);
  const auto earlier = of_namespace ? child_of(*of_namespace, meta.name) : of_namespace;
  if (earlier && !fs::exists(folder, error) && make_directories(volumes_))
    fs::rename(*earlier, folder, error);
  known_.insert(folder);
}

void ClaimFolders::end_list() {
  if (std::exchange(is_listed_, true)) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(volumes_, error))
    if (!known_.contains(entry.path())) gone_.insert(entry.path());
  known_.clear();
}

std::vector<fs::path> ClaimFolders::take_unused(
    const std::function<bool(const fs::path& folder)>& is_used) {
  std::vector<fs::path> unused;
  for (auto each = gone_.begin(); each != gone_.end();) {
    if (is_used(*each)) {
      ++each;
    } else {
      unused.push_back(*each);
      each = gone_.erase(each);
    }
  }
  return unused;
}

}  // namespace trainer::node
