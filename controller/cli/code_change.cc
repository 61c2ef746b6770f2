#include "controller/cli/code_change.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "kube/model/text.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using Entries = std::map<std::string_view, const CodeEntry*>;

Entries by_path(const std::vector<CodeEntry>& entries) {
  Entries all;
  for (const CodeEntry& entry : entries) all.emplace(entry.path, &entry);
  return all;
}

bool is_equal(const CodeEntry& a, const CodeEntry& b) {
  return a.kind == b.kind && a.is_executable == b.is_executable && a.text == b.text;
}

bool is_beside_code(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view end = name.substr(std::min(name.rfind('.'), name.size()));
  const bool is_swap = name.starts_with('.') && end.starts_with(".sw") && end.size() == 4;
  const bool is_lock = name.starts_with(".#") || (name.starts_with('#') && name.ends_with('#'));
  return ("/" + std::string(path)).find("/__pycache__/") != std::string::npos || end == ".pyc" ||
         is_swap || is_lock || name.ends_with('~');
}

}  // namespace

std::vector<std::string> changed_paths(const std::vector<CodeEntry>& before,
                                       const std::vector<CodeEntry>& after) {
  const Entries old_ones = by_path(before);
  const Entries new_ones = by_path(after);
  std::vector<std::string> paths;
  const auto add = [&paths](const CodeEntry& entry) {
    if (entry.kind != CodeEntry::Kind::kDirectory && !is_beside_code(entry.path))
      paths.push_back(entry.path);
  };
  for (const auto& [path, entry] : new_ones) {
    const auto old = old_ones.find(path);
    if (old == old_ones.end() || !is_equal(*old->second, *entry)) add(*entry);
  }
  for (const auto& [path, entry] : old_ones) {
    const auto now = new_ones.find(path);
    const bool is_replaced =
        now != new_ones.end() && now->second->kind == CodeEntry::Kind::kDirectory;
    if (now == new_ones.end() || is_replaced) add(*entry);
  }
  std::ranges::sort(paths);
  return paths;
}

std::string change_text(const std::vector<std::string>& paths) {
  constexpr std::size_t kNamed = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(paths.size(), kNamed); ++i)
    names += (i == 0 ? "" : ", ") + paths[i];
  if (paths.size() > kNamed) names += fmt::format(", and {} more", paths.size() - kNamed);
  return fmt::format("{} changed ({})", count_of(std::ssize(paths), "file"), names);
}

// A process that has just been forked has not the variable yet, so the processes are looked for
// until none is found twice.
std::string_view stop_script() {
  return R"sh(cd "$0/.trainer-watch" 2>/dev/null || { echo "its command is not watched"; exit 3; }
head -c "$1" >code.tar.gz && [ "$(wc -c <code.tar.gz)" -eq "$1" ] || { echo "the code did not arrive"; exit 4; }
: >hold
find_all() {
  if command -v grep >/dev/null; then
    grep -ls TRAINER_CODE_ROUND= /proc/[0-9]*/environ 2>/dev/null
  else
    for file in /proc/[0-9]*/environ; do
      case $(tr '\0' '\n' <"$file" 2>/dev/null) in *TRAINER_CODE_ROUND=*) echo "$file" ;; esac
    done
  fi
}
i=0
none=0
while [ "$none" -lt 2 ]; do
  found=$(find_all)
  if [ -n "$found" ]; then none=0; else none=$((none + 1)); fi
  for file in $found; do
    process=${file#/proc/}
    process=${process%/environ}
    signal=KILL
    if [ "$i" -lt 20 ]; then
      case $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null) in
        *torchrun*|*torch.distributed*) ;;
        *) [ "$i" -eq 0 ] || continue; signal=TERM ;;
      esac
    fi
    kill -s "$signal" "$process" 2>/dev/null
  done
  i=$((i + 1))
  [ "$i" -lt 1200 ] || { echo "its processes do not end"; exit 5; }
  sleep 0.05 || sleep 1
done
)sh";
}

std::string_view begin_script() {
  return R"sh(cd "$0" && head -c "$1" | sh)sh";
}

std::string apply_script(const std::vector<CodeEntry>& before, const std::vector<CodeEntry>& after,
                         std::uint64_t round) {
  const Entries old_ones = by_path(before);
  const Entries new_ones = by_path(after);
  std::string script = "set -e\n";
  std::string directories;
  // Folders come after what is in them.
  for (auto at = old_ones.rbegin(); at != old_ones.rend(); ++at) {
    const auto& [path, entry] = *at;
    const auto now = new_ones.find(path);
    const bool is_gone = now == new_ones.end();
    const std::string name = kube::quoted_for_sh("./" + std::string(path));
    if (!is_gone && now->second->kind == entry->kind) continue;
    if (entry->kind != CodeEntry::Kind::kDirectory)
      script += "rm -f " + name + "\n";
    else if (!is_gone)
      script += "rm -rf " + name + "\n";
    else
      directories += "rmdir " + name + " 2>/dev/null || :\n";
  }
  script += directories;
  script +=
      "if command -v tar >/dev/null && command -v gzip >/dev/null; then\n"
      "  gzip -dc .trainer-watch/code.tar.gz | tar -xof -\n"
      "else\n"
      "  python=python3\n"
      "  command -v python3 >/dev/null || python=python\n"
      "  $python -I -c 'import tarfile; "
      "tarfile.open(\".trainer-watch/code.tar.gz\").extractall()'\n"
      "fi\n"
      "rm -f .trainer-watch/code.tar.gz\n";
  script += fmt::format("echo {} >.trainer-watch/round\nrm -f .trainer-watch/hold\n", round);
  return script;
}

}  // namespace trainer
