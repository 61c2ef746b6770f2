#include "local/node/volumes.hh"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>

#include "kube/model/names.hh"
#include "local/node/files.hh"

namespace trainer::node {

namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;

constexpr std::array<const char*, 4> kDataVolumes = {"configMap", "secret", "downwardAPI",
                                                     "projected"};
constexpr std::int64_t kDefaultMode = 0644;
constexpr std::int64_t kTokenMode = 0600;  // all processes of a pod have one user

bool has_data(const Json& volume) {
  return std::any_of(kDataVolumes.begin(), kDataVolumes.end(),
                     [&volume](const char* kind) { return volume.find(kind) != nullptr; });
}

class FileList {
 public:
  FileList(const Json& pod, const Sources& sources, const PodFacts& facts)
      : pod_(pod), sources_(sources), facts_(facts) {}

  // Adds a ConfigMap or Secret, all of it or its `items`.
  Result<void> add_object(const Json& source, std::string_view name, bool is_secret,
                          std::int64_t mode) {
    const auto& known = is_secret ? sources_.secrets : sources_.config_maps;
    const bool is_optional = source.get_bool("optional");
    const auto object = known.find(name);
    if (object == known.end()) {
      if (is_optional) return {};
      return kube::fail(ErrorCode::kNotFound, "{} \"{}\" not found",
                        is_secret ? "Secret" : "ConfigMap", name);
    }
    const auto data = data_of(object->second, is_secret);
    const auto& items = source.get_array("items");
    if (items.empty())
      for (const auto& [key, text] : data) add(key, text, mode);
    for (const Json& item : items) {
      const auto value = data.find(std::string(item.get_string("key")));
      if (value != data.end())
        add(std::string(item.get_string("path")), value->second, item.get_int("mode", mode));
      else if (!is_optional)
        return kube::fail(ErrorCode::kNotFound, "\"{}\" has no key \"{}\"", name,
                          item.get_string("key"));
    }
    return {};
  }

  Result<void> add_downward(const Json& source, std::int64_t mode) {
    for (const Json& item : source.get_array("items")) {
      const Json* field = item.find("fieldRef");
      auto value = field != nullptr
                       ? field_value(pod_, field->get_string("fieldPath"), facts_)
                       : resource_value(pod_, Json::null(), item.get("resourceFieldRef"), facts_);
      if (!value) return tl::unexpected(value.error());
      add(std::string(item.get_string("path")), std::move(*value), item.get_int("mode", mode));
    }
    return {};
  }

  Result<void> add_token(const Json& source) {
    const TokenSource wanted = token_source_of(source);
    if (wanted.audience.empty())
      return kube::fail(ErrorCode::kUnsupported,
                        "serviceAccountToken: pods of local mode have no rights in its API: state "
                        "the audience that the token is for");
    const auto token = sources_.tokens.find(wanted);
    if (token == sources_.tokens.end())
      return kube::fail(ErrorCode::kNotFound, "there is no token yet for \"{}\"", wanted.audience);
    add(std::string(source.get_string("path")), token->second, kTokenMode);
    return {};
  }

  // Adds a volume, or one source of a projected one.
  Result<void> add_source(const Json& source, std::int64_t mode) {
    if (const Json* config_map = source.find("configMap"))
      return add_object(*config_map, config_map->get_string("name"), false, mode);
    if (const Json* secret = source.find("secret"))
      return add_object(*secret, secret->get_string("secretName", secret->get_string("name")), true,
                        mode);
    if (const Json* downward = source.find("downwardAPI")) return add_downward(*downward, mode);
    if (const Json* token = source.find("serviceAccountToken")) return add_token(*token);
    return kube::fail(ErrorCode::kUnsupported,
                      "this source of a projected volume is not in local mode: remove it");
  }

  std::vector<VolumeFile> take() { return std::move(files_); }

 private:
  void add(std::string path, std::string text, std::int64_t mode) {
    files_.push_back({std::move(path), std::move(text), static_cast<mode_t>(mode)});
  }

  const Json& pod_;
  const Sources& sources_;
  const PodFacts& facts_;
  std::vector<VolumeFile> files_;
};

Result<void> write_files(const std::filesystem::path& folder,
                         const std::vector<VolumeFile>& files) {
  for (const VolumeFile& file : files) {
    const auto path = path_below(folder, file.path);
    if (!path) return tl::unexpected(path.error());
    auto written = make_directories(path->parent_path());
    // The mode 0400 is for the owner, who may be another user on a cluster.
    if (written) written = replace_file(*path, file.text, file.mode | 0400);
    if (!written) return written;
  }
  return {};
}

Result<void> check_host_path(const Json& host_path) {
  const std::string path(host_path.get_string("path"));
  const std::string_view type = host_path.get_string("type");
  if (type == "DirectoryOrCreate") return make_directories(path);
  if (type == "FileOrCreate" && !std::filesystem::exists(path)) return write_file(path, "");
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return {};
  return kube::fail(ErrorCode::kNotFound, "hostPath {} is not on this machine", path);
}

}  // namespace

bool is_empty_dir(const Json& volume) {
  return volume.find("emptyDir") != nullptr;
}

Result<std::string> source_of(const Json& pod, const Json& volume, const VolumePlaces& places) {
  const std::string name(volume.get_string("name"));
  const auto native = [](auto path) { return path.native(); };
  if (is_empty_dir(volume) || has_data(volume))
    return child_of(places.pod / kVolumes, name).map(native);
  if (const Json* host = volume.find("hostPath")) return std::string(host->get_string("path"));
  if (const Json* claim = volume.find("persistentVolumeClaim")) {
    const std::string_view wanted = claim->get_string("claimName");
    const auto found = places.claims.find(wanted);
    if (found != places.claims.end()) return found->second.native();
    // The server accepts any text here, like kube-apiserver, and it is the name of a folder.
    if (const auto problems = kube::dns1123_subdomain_problems(wanted); !problems.empty())
      return kube::fail(
          ErrorCode::kUnsupported,
          "spec.volumes: \"{}\": persistentVolumeClaim.claimName: {} is no name of a claim: {}",
          name, quoted_name(wanted), problems.front());
    return child_of(places.unclaimed, pod.get("metadata").get_string("namespace"))
        .and_then([wanted](const auto& of_namespace) { return child_of(of_namespace, wanted); })
        .map(native);
  }
  return kube::fail(ErrorCode::kUnsupported,
                    "spec.volumes: \"{}\" is of a kind that is not in local mode: use hostPath, "
                    "emptyDir, configMap, secret or persistentVolumeClaim",
                    name);
}

Result<std::vector<VolumeFile>> files_of(const Json& pod, const Json& volume,
                                         const Sources& sources, const PodFacts& facts) {
  FileList files(pod, sources, facts);
  Result<void> added;
  if (const Json* projected = volume.find("projected")) {
    const std::int64_t mode = projected->get_int("defaultMode", kDefaultMode);
    for (const Json& source : projected->get_array("sources"))
      if (added) added = files.add_source(source, mode);
  } else if (has_data(volume)) {
    std::int64_t mode = kDefaultMode;
    for (const char* kind : kDataVolumes) mode = volume.get(kind).get_int("defaultMode", mode);
    added = files.add_source(volume, mode);
  }
  if (!added)
    return tl::unexpected(added.error().at("volume " + std::string(volume.get_string("name"))));
  return files.take();
}

Result<void> write_tokens(const Json& pod, const Sources& sources, const VolumePlaces& places) {
  const PodFacts no_facts;
  for (const Json& volume : pod.get("spec").get_array("volumes")) {
    FileList files(pod, sources, no_facts);
    for (const Json& source : volume.get("projected").get_array("sources")) {
      const Json* token = source.find("serviceAccountToken");
      if (token == nullptr) continue;
      if (auto added = files.add_token(*token); !added) return added;
    }
    const auto made = files.take();
    if (made.empty()) continue;
    const auto folder = source_of(pod, volume, places);
    if (!folder) return tl::unexpected(folder.error());
    if (auto written = write_files(*folder, made); !written) return written;
  }
  return {};
}

Result<void> make_volumes(const Json& pod, const Sources& sources, const PodFacts& facts,
                          const VolumePlaces& places) {
  for (const Json& volume : pod.get("spec").get_array("volumes")) {
    const auto source = source_of(pod, volume, places);
    if (!source) return tl::unexpected(source.error());
    const Json* host = volume.find("hostPath");
    const auto made = host != nullptr ? check_host_path(*host) : make_directories(*source);
    if (!made) return made;
    if (!has_data(volume)) continue;
    const auto files = files_of(pod, volume, sources, facts);
    if (!files) return tl::unexpected(files.error());
    if (const auto written = write_files(*source, *files); !written) return written;
  }
  return {};
}

}  // namespace trainer::node
