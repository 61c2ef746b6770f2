// These files decide what this process does: a token, a certificate authority, the command of a
// pod. They are trusted by the rules by which OpenSSH trusts a user's own (sshd_config,
// StrictModes).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/error.hh"
#include "local/node/files.hh"

namespace trainer::node {

// This is a folder of this user (the effective one) that no other can write, nor replace: each
// folder above it, and each link on the way, is this user's or root's. Others may write these only
// if they have the sticky bit, like /tmp. The folder is opened once, from the root down, and files
// are opened below its descriptor.
class OwnedDirectory {
 public:
  // Errors: kNotFound if it is missing; kInvalid: a sentence with the path that another user may
  // change, its owner, its mode and what to do.
  static kube::Result<OwnedDirectory> open(const std::filesystem::path& path);
  // Does the same; missing folders are made with mode 0700.
  static kube::Result<OwnedDirectory> make(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }  // absolute, without links
  // Opens a folder in it, to which the same rules apply, and which is no link; makes it if it is
  // missing. Errors are those of make().
  kube::Result<OwnedDirectory> make_folder(const std::string& name) const;
  // Opens a regular file that is this user's, which no other can write, and no link. If `flags`
  // make the file, it has mode 0600. Errors are those of open().
  kube::Result<Fd> open_file(const std::string& name, int flags) const;
  // Errors are those of open_file().
  kube::Result<std::string> read(const std::string& name) const;
  bool has(const std::string& name) const;
  // Readers see the old text or the new one. A file that has the text already is not written, so
  // that also a full disk has room. Errors (kInvalid) name the file.
  kube::Result<void> replace(const std::string& name, std::string_view text) const;
  // Returns false, by errno, if there is none.
  bool rename(const std::string& from, const std::string& to) const;
  bool remove(const std::string& name) const;

 private:
  OwnedDirectory(Fd folder, std::filesystem::path path)
      : folder_(std::move(folder)), path_(std::move(path)) {}
  Fd folder_;  // O_PATH
  std::filesystem::path path_;
};

// Does the same for a file at any place, like open_file(): the folders above it are checked, too,
// but its own folder may be one of those. Errors say to name another file.
kube::Result<Fd> open_owned(const std::filesystem::path& file, int flags);
// Opens a file below an OwnedDirectory, whose folders are not checked again.
kube::Result<Fd> open_owned_below(const std::filesystem::path& file, int flags);
kube::Result<std::string> read_owned_below(const std::filesystem::path& file);

}  // namespace trainer::node
