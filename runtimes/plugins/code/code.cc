// A job brings files of its own, without an image or a claim for them (docs/users/run.md). Upstream
// has no such thing.
#include "runtimes/plugins/code/code.hh"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "kube/model/names.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/switches.hh"
#include "runtimes/plugins/code/watch_script.hh"

namespace trainer::pipeline {
namespace {

constexpr std::string_view kUnpacker = "unpack-code";
constexpr std::string_view kCodeVolume = "kubeflow-trainer-code";
constexpr std::string_view kPartsVolume = "kubeflow-trainer-code-parts";
constexpr std::string_view kPartsDirectory = "/var/run/kubeflow/trainer-code";

// The image is the trainer's own, which every node pulls anyway. One with PyTorch has Python; one
// without Python mostly has tar.
std::string unpack_script() {
  return fmt::format(
      "set -e\n"
      "cd \"$0\"\n"
      "if command -v tar >/dev/null && command -v gzip >/dev/null; then\n"
      "  cat {0}/* | gzip -dc | tar -xof -\n"
      "  exit\n"
      "fi\n"
      "for python in python3 python; do\n"
      "  command -v $python >/dev/null || continue\n"
      "  cat {0}/* | $python -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, "
      "mode=\"r|gz\").extractall()'\n"
      "  exit\n"
      "done\n"
      "echo \"the image has neither tar and gzip nor python, one of which unpacks the code: add "
      "them to the image, or put the code into the image, a claim or a git repository\" >&2\n"
      "exit 1\n",
      kPartsDirectory);
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    words.emplace_back(list.substr(0, comma));
    if (comma == list.size()) return words;
    list.remove_prefix(comma + 1);
  }
}

std::string directory_of(const Draft& draft) {
  const auto setting = find_setting(draft, kWorkingDirKey);
  return std::string(setting ? setting->value : kDefaultCodeDirectory);
}

// Under MPI every pod has the files: mpirun starts processes in its own working directory.
bool has_code(const Draft& draft, std::size_t index) {
  const MlPolicy* const policy = draft.ml_policy();
  const std::string_view name = draft.pod_sets[index].name;
  const bool is_of_mpi = policy != nullptr && policy->mpi && (name == kNode || name == kLauncher);
  return draft.is_trainer(index) || is_of_mpi;
}

// Under MPI and Flux one process starts those of all pods, so no pod can begin again by itself.
bool is_watched(const Draft& draft, std::size_t index) {
  const MlPolicy* const policy = draft.ml_policy();
  return is_switched_on(draft, kCodeWatchKey, false) && draft.is_trainer(index) &&
         !(policy != nullptr && (policy->mpi || policy->flux));
}

// A container without a command runs the image's entrypoint, which nothing can extend here.
void watch_code(ContainerEdit& container, const std::string& directory) {
  const kube::Json::Array& words = container.json().get_array("command");
  if (words.empty()) return;
  kube::Json command = kube::Json::array({"sh", "-c", watch_script(), directory});
  for (const kube::Json& word : words) command.push_back(word);
  container.set("command", std::move(command));
}

kube::Json parts_volume(std::string_view names) {
  kube::Json sources = kube::Json::array();
  for (const std::string& name : words_of(names))
    sources.push_back(kube::Json::object({{"configMap", kube::Json::object({{"name", name}})}}));
  return kube::Json::object({{"name", kPartsVolume},
                             {"projected", kube::Json::object({{"sources", std::move(sources)}})}});
}

// A quota may want CPU and memory of every container. They are no more than those of the training,
// which runs later, so that the pod asks for no more than without this container.
kube::Json resources_of(const kube::Json& container) {
  kube::Json resources = kube::Json::object();
  for (const char* kind : {"limits", "requests"})
    for (const char* name : {"cpu", "memory"})
      if (const kube::Json* amount = container.find_path({"resources", kind, name}))
        resources[kind].set(name, *amount);
  return resources;
}

kube::Json unpacker_of(const kube::Json& container, const std::string& directory) {
  kube::Json made = kube::Json::object(
      {{"name", kUnpacker},
       {"image", container.get_string("image")},
       {"command", kube::Json::array({"sh", "-c", unpack_script(), directory})},
       {"volumeMounts",
        kube::Json::array(
            {kube::Json::object({{"name", kCodeVolume}, {"mountPath", directory}}),
             kube::Json::object(
                 {{"name", kPartsVolume}, {"mountPath", kPartsDirectory}, {"readOnly", true}})})}});
  if (kube::Json resources = resources_of(container); !resources.empty())
    made.set("resources", std::move(resources));
  // The files belong to the user of the training, and the namespace may want the settings.
  for (const char* member : {"imagePullPolicy", "securityContext"})
    if (const kube::Json* value = container.find(member)) made.set(member, *value);
  return made;
}

// Returns the path in its shortest form.
std::string normal_path(std::string_view path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  while (text.starts_with("//")) text.erase(0, 1);
  return text;
}

void check_directory(const Draft& draft, kube::FieldErrors& errors) {
  const auto setting = find_setting(draft, kWorkingDirKey);
  if (!setting) return;
  const std::string path = "/" + std::string(setting->value) + "/";
  const bool is_path = setting->value.starts_with('/') && normal_path(setting->value) != "/" &&
                       path.find("/../") == path.npos &&
                       setting->value.find_first_of(":,") == setting->value.npos;
  if (!is_path)
    errors.push_back(kube::invalid(setting->path, setting->value,
                                   "must be an absolute path below /, without \"..\", \":\" and "
                                   "\",\", such as {}",
                                   kDefaultCodeDirectory));
}

// The volume with the code would hide the one that the runtime or a patch mounts there.
void check_mounts(const Draft& draft, const Setting& setting, kube::FieldErrors& errors) {
  const std::string directory = normal_path(directory_of(draft));
  for (const kube::Json& mount : draft.trainer_container().get_array("volumeMounts"))
    if (normal_path(mount.get_string("mountPath")) == directory)
      errors.push_back(kube::invalid(
          setting.path, setting.value,
          "the code is unpacked into {}, where volume \"{}\" is mounted: name another directory by "
          "annotation {}",
          directory, mount.get_string("name"), kWorkingDirKey));
}

class Code final : public Plugin {
 public:
  std::string_view source() const override { return "plugin code"; }
  bool is_active(const Draft& draft) const override {
    return find_setting(draft, kCodeKey) || find_setting(draft, kWorkingDirKey) ||
           find_setting(draft, kCodeWatchKey);
  }
  void enforce_pod_spec(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

void Code::enforce_pod_spec(Draft& draft) const {
  const auto code = find_setting(draft, kCodeKey);
  if (!code && !find_setting(draft, kWorkingDirKey)) return;
  const std::string directory = directory_of(draft);
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    if (!has_code(draft, i)) continue;
    auto container = draft.edit(i, kNode, source());
    if (!container) continue;
    container->set("workingDir", directory);
    if (!code) continue;
    container->mount(kube::Json::object({{"name", kCodeVolume}, {"mountPath", directory}}));
    if (is_watched(draft, i)) watch_code(*container, directory);
    kube::Json unpacker = unpacker_of(container->json(), directory);
    if (draft.journal.is_on())
      draft.journal.note(fmt::format("{}.spec.initContainers[{}]", draft.pod_path(i), kUnpacker),
                         source());
    draft.pod_template(i)["spec"]["initContainers"].push_back(std::move(unpacker));
    draft.upsert_volume(i, parts_volume(code->value), source());
    draft.upsert_volume(
        i, kube::Json::object({{"name", kCodeVolume}, {"emptyDir", kube::Json::object()}}),
        source());
  }
}

void Code::validate(const Draft& draft, kube::FieldErrors& errors) const {
  check_directory(draft, errors);
  check_switch(draft, kCodeWatchKey, errors);
  const auto setting = find_setting(draft, kCodeKey);
  if (!setting) return;
  const auto names = words_of(setting->value);
  if (names.size() > kMaxCodeParts)
    errors.push_back(kube::invalid(setting->path, setting->value,
                                   "names {} ConfigMaps, and {} is the limit: put the code into "
                                   "the image, a claim or a git repository",
                                   names.size(), kMaxCodeParts));
  for (const std::string& name : names)
    if (const std::string problem = kube::check_dns1123_subdomain(name); !problem.empty())
      errors.push_back(kube::invalid(setting->path, name,
                                     "must be names of ConfigMaps with commas between them: {}",
                                     problem));
  check_mounts(draft, *setting, errors);
}

void Code::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  if (!is_switched_on(draft, kCodeWatchKey, false)) return;
  const std::string path = find_setting(draft, kCodeWatchKey)->path;
  if (!find_setting(draft, kCodeKey))
    warnings.push_back(
        fmt::format("{}: there is no code to watch: name it by annotation {}", path, kCodeKey));
  else if (draft.command ? draft.command->empty()
                         : draft.trainer_container().get_array("command").empty())
    warnings.push_back(fmt::format(
        "{}: the training has no command, so nothing begins it again in its pods after an edit: "
        "set spec.trainer.command",
        path));
}

std::unique_ptr<const Plugin> make_code() {
  return std::make_unique<Code>();
}

}  // namespace trainer::pipeline
