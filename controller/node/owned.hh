// Files that decide what this process does: a token, a certificate authority, the command of a pod.
// They are trusted as OpenSSH trusts a user's own (sshd_config, StrictModes).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "controller/node/files.hh"
#include "kube/model/error.hh"

namespace trainer::node {

// A folder of this user (the effective one) that no other can write, nor replace: each folder above
// it, and each link on the way, is this user's or root's, and others may write it only where it has
// the sticky bit, as /tmp. It is opened once, from the root down, and files are opened below its
// descriptor.
class OwnedDirectory {
 public:
  // Errors: kNotFound where it is missing; kInvalid: a sentence with the path that another user may
  // change, its owner, its mode and a way out.
  static kube::Result<OwnedDirectory> open(const std::filesystem::path& path);
  // The same; what is missing is made with mode 0700.
  static kube::Result<OwnedDirectory> make(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }  // absolute, without links
  // Opens a folder in it, to which the same rules apply, and which is no link; makes it where it is
  // missing. Errors: as make().
  kube::Result<OwnedDirectory> make_folder(const std::string& name) const;
  // Opens a regular file that is this user's, which no other can write, and no link. One that
  // `flags` make has mode 0600. Errors: as open().
  kube::Result<Fd> open_file(const std::string& name, int flags) const;
  // Errors: as open_file().
  kube::Result<std::string> read(const std::string& name) const;
  bool has(const std::string& name) const;
  // Readers see the old text or the new one. A file that has the text already stays as it is, for
  // which a full disk has room. Errors (kInvalid) name the file.
  kube::Result<void> replace(const std::string& name, std::string_view text) const;
  // False, by errno, where there is none.
  bool rename(const std::string& from, const std::string& to) const;
  bool remove(const std::string& name) const;

 private:
  OwnedDirectory(Fd folder, std::filesystem::path path)
      : folder_(std::move(folder)), path_(std::move(path)) {}
  Fd folder_;  // O_PATH
  std::filesystem::path path_;
};

// Does the same for a file at any place, as open_file(): also the folders above it are checked, but
// that in which it is may be one of those. Errors say to name another file.
kube::Result<Fd> open_owned(const std::filesystem::path& file, int flags);
// Opens a file below an OwnedDirectory, whose folders are not checked again.
kube::Result<Fd> open_owned_below(const std::filesystem::path& file, int flags);
kube::Result<std::string> read_owned_below(const std::filesystem::path& file);

}  // namespace trainer::node
