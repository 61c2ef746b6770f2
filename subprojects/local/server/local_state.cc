#include "local/server/local_state.hh"

#include <utility>

namespace trainer {

kube::Result<LocalState> open_local_state(const std::filesystem::path& path,
                                          const std::string& audit, kube::Time now) {
  LocalState state;
  auto directory = StateDirectory::lock(path);
  if (!directory) return tl::unexpected(directory.error());
  state.directory = std::move(*directory);
  auto journal = Journal::open(state.directory->folder());
  if (!journal) return tl::unexpected(journal.error());
  state.journal = std::move(*journal);
  auto access = load_access(*state.directory, now);
  if (!access) return tl::unexpected(access.error());
  state.access = std::move(*access);
  if (audit.empty()) return state;
  auto opened = Audit::open(audit);
  if (!opened) return tl::unexpected(opened.error());
  state.audit = std::move(*opened);
  return state;
}

}  // namespace trainer
