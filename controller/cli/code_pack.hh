// The files of `--code` become a tar, compressed, in ConfigMaps. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct CodeEntry {
  enum class Kind : std::uint8_t { kFile, kDirectory, kLink };
  Kind kind = Kind::kFile;
  std::string path;  // "src/model.py", below the folder
  bool is_executable = false;
  std::string text;  // the file's content, or where the link leads
};

// A ConfigMap may have 1 MiB, and `kubectl apply` writes the whole object, as text, into an
// annotation: all annotations together may have 256 KiB. So may base64 of this size, with its
// metadata.
inline constexpr std::size_t kMaxCodePart = std::size_t{180} << 10;
inline constexpr std::size_t kMaxCode = std::size_t{3} << 20;  // compressed

// Equal entries make equal bytes, in any order of the entries: no times, users or groups are kept.
std::string make_tar(const std::vector<CodeEntry>& entries);

// Returns the compressed tar in parts. Errors (kTooLarge): it is longer than kMaxCode.
kube::Result<std::vector<std::string>> pack_code(const std::vector<CodeEntry>& entries,
                                                 std::string_view folder);

// Returns the message about files that are too large together: it lists the largest ones.
// `size` is the sum in words.
struct SizedFile {
  std::string path;
  std::uint64_t bytes = 0;
};
kube::Error too_large(std::string_view folder, std::string_view size, std::vector<SizedFile> files);
// Returns "12 KiB" or "3.4 MiB".
std::string size_text(std::uint64_t bytes);

// Returns the names of the ConfigMaps of a job with so many parts.
std::vector<std::string> code_names(std::string_view job, std::size_t parts);
// Returns the ConfigMaps; `ns` "" leaves the namespace to who applies them. Those whose code may be
// edited are not immutable.
std::vector<kube::Json> code_config_maps(const kube::ObjectKey& job,
                                         const std::vector<std::string>& parts,
                                         bool is_editable = false);

}  // namespace trainer
