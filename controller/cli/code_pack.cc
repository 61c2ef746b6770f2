#include "controller/cli/code_pack.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/digest.hh"
#include "kube/model/gzip.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kLongestName = 100;  // the room in a header
constexpr std::size_t kListedFiles = 10;

// The fields of a header are at these offsets (POSIX, ustar).
void set_field(std::string& header, std::size_t at, std::string_view text) {
  header.replace(at, text.size(), text);
}

std::string tar_header(std::string_view name, char type, int mode, std::size_t size,
                       std::string_view link) {
  std::string header(kTarBlock, '\0');
  set_field(header, 0, name.substr(0, kLongestName));
  set_field(header, 100, fmt::format("{:07o}", mode));
  set_field(header, 108, "0000000");  // user
  set_field(header, 116, "0000000");  // group
  set_field(header, 124, fmt::format("{:011o}", size));
  set_field(header, 136, "00000000000");  // time
  set_field(header, 148, "        ");     // the checksum is computed with spaces in its place
  header[156] = type;
  set_field(header, 157, link.substr(0, kLongestName));
  set_field(header, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  set_field(header, 148, fmt::format("{:06o}", sum) + '\0');
  return header;
}

void append_blocks(std::string& tar, std::string_view text) {
  tar += text;
  tar.append((kTarBlock - text.size() % kTarBlock) % kTarBlock, '\0');
}

// A name that a header has no room for is an entry of its own before it: GNU's form, which busybox
// and Python read, too.
void append_long_name(std::string& tar, std::string_view name, char type) {
  if (name.size() <= kLongestName) return;
  const std::string text = std::string(name) + '\0';
  tar += tar_header("././@LongLink", type, 0, text.size(), "");
  append_blocks(tar, text);
}

void append_entry(std::string& tar, const CodeEntry& entry) {
  const bool is_directory = entry.kind == CodeEntry::Kind::kDirectory;
  const bool is_link = entry.kind == CodeEntry::Kind::kLink;
  const std::string name = is_directory ? entry.path + "/" : entry.path;
  const std::string_view link = is_link ? std::string_view(entry.text) : "";
  const bool is_file = entry.kind == CodeEntry::Kind::kFile;
  const std::string_view text = is_file ? std::string_view(entry.text) : "";
  const int mode = is_link ? 0777 : is_directory || entry.is_executable ? 0755 : 0644;
  append_long_name(tar, link, 'K');
  append_long_name(tar, name, 'L');
  tar += tar_header(name, is_directory ? '5' : is_link ? '2' : '0', mode, text.size(), link);
  append_blocks(tar, text);
}

}  // namespace

std::string make_tar(const std::vector<CodeEntry>& entries) {
  std::vector<const CodeEntry*> sorted;
  for (const CodeEntry& entry : entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, {},
                    [](const CodeEntry* entry) -> std::string_view { return entry->path; });
  std::string tar;
  for (const CodeEntry* entry : sorted) append_entry(tar, *entry);
  tar.append(2 * kTarBlock, '\0');
  return tar;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKibi = 1024;
  if (bytes < kKibi) return fmt::format("{} bytes", bytes);
  if (bytes < kKibi * kKibi) return fmt::format("{} KiB", (bytes + kKibi - 1) / kKibi);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1U << 20));
}

kube::Error too_large(std::string_view folder, std::string_view size,
                      std::vector<SizedFile> files) {
  std::ranges::sort(files, [](const SizedFile& a, const SizedFile& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.path < b.path;
  });
  std::string list;
  for (std::size_t i = 0; i < std::min(files.size(), kListedFiles); ++i)
    list += fmt::format("\n{:>10}  {}", size_text(files[i].bytes), files[i].path);
  if (files.size() > kListedFiles)
    list += fmt::format("\n{:>10}  {} more files", "", files.size() - kListedFiles);
  return {kube::ErrorCode::kTooLarge,
          fmt::format("--code {}: its files have {}, and {} compressed is the limit: leave files "
                      "out by .trainerignore, or put them on a claim (docs/users/data.md), into a "
                      "git repository that COMMAND clones, or into an image; the largest:{}",
                      folder, size, size_text(kMaxCode), list)};
}

kube::Result<std::vector<std::string>> pack_code(const std::vector<CodeEntry>& entries,
                                                 std::string_view folder) {
  const std::string tar = make_tar(entries);
  // Random bytes become longer by less than that.
  kube::GzipWriter writer(tar.size() + tar.size() / 100 + 4096);
  writer.add(tar);
  const std::string bytes = writer.finish("");
  if (bytes.size() > kMaxCode) {
    std::vector<SizedFile> files;
    for (const CodeEntry& entry : entries)
      if (entry.kind == CodeEntry::Kind::kFile) files.push_back({entry.path, entry.text.size()});
    return tl::unexpected(
        too_large(folder, size_text(bytes.size()) + " compressed", std::move(files)));
  }
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < bytes.size(); at += kMaxCodePart)
    parts.push_back(bytes.substr(at, kMaxCodePart));
  return parts;
}

std::vector<std::string> code_names(std::string_view job, std::size_t parts) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts; ++i) names.push_back(fmt::format("{}-code-{}", job, i));
  return names;
}

std::vector<Json> code_config_maps(const kube::ObjectKey& job,
                                   const std::vector<std::string>& parts, bool is_editable) {
  const auto names = code_names(job.name, parts.size());
  std::vector<Json> objects;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Json metadata = Json::object({{"name", names[i]}});
    if (!job.ns.empty()) metadata.set("namespace", job.ns);
    // All parts are in one folder of the pod, in this order.
    Json object = Json::object({{"apiVersion", kube::kConfigMaps.api_version()},
                                {"kind", kube::kConfigMaps.kind},
                                {"metadata", std::move(metadata)},
                                {"binaryData", Json::object({{fmt::format("code.tar.gz.{:02}", i),
                                                              kube::base64_encode(parts[i])}})}});
    if (!is_editable) object.set("immutable", true);
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace trainer
