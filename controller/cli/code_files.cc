#include "controller/cli/code_files.hh"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "controller/cli/code_ignore.hh"
#include "kube/client/read_file.hh"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using kube::Result;

// Text is compressed to less than a tenth of its size at best.
constexpr std::uint64_t kMaxFolder = std::uint64_t{64} << 20;
constexpr std::size_t kMaxEntries = 20'000;

// Files that such a file names must not be sent, so one that cannot be read is an error.
Result<std::string> text_or_nothing(const fs::path& file) {
  std::error_code error;
  if (fs::status(file, error).type() == fs::file_type::not_found) return std::string();
  return kube::read_file(file.string());
}

// Returns where git keeps the patterns that are in no file of the repository. In a worktree and in
// a submodule `.git` is a file that names the folder.
Result<fs::path> exclude_file(const fs::path& repository) {
  std::error_code error;
  const fs::path git = repository / ".git";
  if (!fs::is_regular_file(git, error)) return git / "info/exclude";
  const auto line_of = [](std::string text) {
    text.erase(std::min(text.find('\n'), text.size()));
    return text;
  };
  constexpr std::string_view kPrefix = "gitdir: ";
  const auto text = kube::read_file(git.string());
  if (!text) return tl::unexpected(text.error());
  const std::string line = line_of(*text);
  if (!line.starts_with(kPrefix)) return git / "info/exclude";
  const fs::path folder = repository / line.substr(kPrefix.size());
  const auto common = text_or_nothing(folder / "commondir");
  if (!common) return tl::unexpected(common.error());
  return (common->empty() ? folder : folder / line_of(*common)) / "info/exclude";
}

// The rules of a folder, and where paths below it begin.
struct Level {
  std::size_t prefix = 0;  // the length of the folder's path with its slash
  IgnoreRules rules;
};

class CodeWalk {
 public:
  explicit CodeWalk(CodeFolder& found, std::string shown)
      : found_(found), shown_(std::move(shown)) {}

  Result<void> run() {
    if (auto done = add_levels_above(); !done) return done;
    if (auto done = enter(found_.root, ""); !done) return done;
    if (found_.bytes > kMaxFolder)
      return tl::unexpected(too_large(shown_, size_text(found_.bytes), std::move(sizes_)));
    return read_all();
  }

 private:
  // Rules of the repository are above the folder if it is a part of one.
  Result<void> add_levels_above() {
    std::vector<fs::path> folders{found_.root};
    std::error_code error;
    while (!fs::exists(folders.back() / ".git", error)) {
      if (!folders.back().has_relative_path()) return {};
      folders.push_back(folders.back().parent_path());
    }
    const fs::path repository = folders.back();
    Level own;
    own.prefix = with_slash(repository).size();
    const auto file = exclude_file(repository);
    if (!file) return unreadable_rules(file.error());
    const auto text = text_or_nothing(*file);
    if (!text) return unreadable_rules(text.error());
    own.rules.add(*text);
    levels_.push_back(std::move(own));
    std::reverse(folders.begin(), folders.end());
    for (const fs::path& folder : folders)
      if (folder != found_.root)
        if (auto done = add_level(folder); !done) return done;
    return {};
  }

  static std::string with_slash(const fs::path& folder) {
    const std::string text = folder.string();
    return text.ends_with('/') ? text : text + "/";
  }

  Result<void> add_level(const fs::path& folder) {
    Level level;
    level.prefix = with_slash(folder).size();
    for (const char* name : {".gitignore", ".trainerignore"}) {
      const auto text = text_or_nothing(folder / name);
      if (!text) return unreadable_rules(text.error());
      level.rules.add(*text);
    }
    levels_.push_back(std::move(level));
    return {};
  }

  // The rules of the innermost folder that has one for the path decide.
  bool is_ignored(const std::string& path, bool is_directory) const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      if (const auto is = level->rules.is_ignored(path.substr(level->prefix), is_directory))
        return *is;
    return false;
  }

  // `below` is the folder's path below the root, with a slash at its end; "" for the root.
  Result<void> enter(const fs::path& folder, const std::string& below) {
    if (auto done = add_level(folder); !done) return done;
    std::error_code error;
    std::vector<fs::directory_entry> children;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      children.push_back(*it);
    if (error) return unreadable(below, error);
    std::ranges::sort(children, {}, [](const fs::directory_entry& each) { return each.path(); });
    for (const fs::directory_entry& child : children)
      if (auto done = visit(child, below + child.path().filename().string()); !done) return done;
    levels_.pop_back();
    return {};
  }

  Result<void> visit(const fs::directory_entry& child, const std::string& path) {
    std::error_code error;
    const fs::file_status status = child.symlink_status(error);
    if (error) return unreadable(path, error);
    const bool is_directory = fs::is_directory(status);
    const std::string name = child.path().filename().string();
    if (name == ".git") return {};
    if (is_ignored(child.path().string(), is_directory)) return {};
    if (is_secret_name(name)) return leave_out(path, "its name is that of a secret");
    if (found_.entries.size() >= kMaxEntries) return too_many();
    if (is_directory) {
      found_.entries.push_back({CodeEntry::Kind::kDirectory, path});
      return enter(child.path(), path + "/");
    }
    if (fs::is_symlink(status)) return add_link(child.path(), path);
    if (!fs::is_regular_file(status)) return leave_out(path, "it is no file");
    const bool is_executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    const std::uint64_t size = child.file_size(error);
    if (error) return unreadable(path, error);
    found_.entries.push_back({CodeEntry::Kind::kFile, path, is_executable});
    found_.bytes += size;
    ++found_.files;
    sizes_.push_back({path, size});
    return {};
  }

  // A link to a file of the folder leads there in pods, too, if it is relative.
  Result<void> add_link(const fs::path& link, const std::string& path) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    if (error) return leave_out(path, "the link leads to nothing");
    if (!target.string().starts_with(with_slash(found_.root)))
      return leave_out(path, "the link leads out of the folder");
    const fs::path from = fs::canonical(link.parent_path(), error);
    if (error) return unreadable(path, error);
    found_.entries.push_back(
        {CodeEntry::Kind::kLink, path, false, target.lexically_relative(from).string()});
    return {};
  }

  Result<void> read_all() {
    for (CodeEntry& entry : found_.entries) {
      if (entry.kind != CodeEntry::Kind::kFile) continue;
      auto text = kube::read_file((fs::path(found_.root) / entry.path).string());
      if (!text) return unreadable(entry.path, std::make_error_code(std::errc::io_error));
      entry.text = std::move(*text);
    }
    return {};
  }

  Result<void> leave_out(const std::string& path, std::string_view why) {
    found_.left_out.push_back(fmt::format("{} ({})", path, why));
    return {};
  }

  tl::unexpected<kube::Error> unreadable(const std::string& path,
                                         const std::error_code& error) const {
    return kube::fail(kube::ErrorCode::kNotFound,
                      "--code {}: {} cannot be read ({}): make it readable, or name it in "
                      ".trainerignore",
                      shown_, path.empty() ? std::string("the folder") : path, error.message());
  }

  tl::unexpected<kube::Error> unreadable_rules(const kube::Error& error) const {
    return kube::fail(kube::ErrorCode::kNotFound,
                      "--code {}: {}, which may name files to leave out: make it readable", shown_,
                      error.message);
  }

  tl::unexpected<kube::Error> too_many() const {
    return kube::fail(kube::ErrorCode::kTooLarge,
                      "--code {}: there are more than {} files and folders: name the folder of "
                      "the code alone, or leave folders out by .trainerignore",
                      shown_, kMaxEntries);
  }

  CodeFolder& found_;
  const std::string shown_;  // the folder as the user has written it
  std::vector<Level> levels_;
  std::vector<SizedFile> sizes_;
};

}  // namespace

Result<CodeFolder> read_code(const std::string& folder) {
  std::error_code error;
  CodeFolder found;
  const fs::path root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root, error))
    return kube::fail(kube::ErrorCode::kNotFound,
                      "--code {}: there is no such folder: name the one that has the code", folder);
  found.root = root.string();
  if (auto done = CodeWalk(found, folder).run(); !done) return tl::unexpected(done.error());
  return found;
}

}  // namespace trainer
