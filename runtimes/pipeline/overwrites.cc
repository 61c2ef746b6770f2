#include "runtimes/pipeline/overwrites.hh"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/patches.hh"
#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

namespace {

constexpr std::size_t kEnoughWarnings = 20;  // no one reads more of these warnings

struct Kind {
  std::string_view list;
  std::string_view noun;
  std::string_view key;        // the member by which entries are found; "" for a map
  std::string_view part = {};  // the part of the pod that has a map
};
constexpr Kind kKinds[] = {{"env", "variable", "name"},
                           {"ports", "port", "containerPort"},
                           {"volumeMounts", "mount", "mountPath"},
                           {"volumes", "volume", "name"},
                           {"labels", "label", "", "metadata"},
                           {"annotations", "annotation", "", "metadata"},
                           {"schedulingGroup", "scheduling group", "", "spec"}};

const Kind& kind_of(const Replaced& entry) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&entry](const Kind& kind) { return kind.list == entry.list; });
}

const kube::Json* find_entry(const Draft& draft, const Replaced& entry) {
  const Kind& kind = kind_of(entry);
  const kube::Json& pod = draft.pod_template(entry.job);
  if (kind.key.empty()) return pod.get(kind.part).get(entry.list).find(entry.key);
  const kube::Json* owner =
      entry.container.empty() ? pod.find("spec") : kube::find_any_container(pod, entry.container);
  if (owner == nullptr) return nullptr;
  const auto& items = owner->get_array(entry.list);
  const auto at = std::find_if(items.begin(), items.end(), [&](const kube::Json& item) {
    const kube::Json& key = item.get(kind.key);
    return key.is_int() ? std::to_string(key.as_int()) == entry.key
                        : item.get_string(kind.key) == entry.key;
  });
  return at == items.end() ? nullptr : &*at;
}

// The path has the form of the journal.
std::string path_of(const Draft& draft, const Replaced& entry) {
  if (const Kind& kind = kind_of(entry); kind.key.empty())
    return draft.entry_path(entry.job, kind.part, entry.list, entry.key);
  const std::string pod = draft.pod_path(entry.job);
  if (entry.container.empty()) return fmt::format("{}.spec.{}[{}]", pod, entry.list, entry.key);
  const bool is_regular = draft.container(entry.job, entry.container) != nullptr;
  return fmt::format("{}.spec.{}[{}].{}[{}]", pod, is_regular ? "containers" : "initContainers",
                     entry.container, entry.list, entry.key);
}

std::string title_of(const Draft& draft, const Replaced& entry) {
  return fmt::format(
      "{} {} of {}job {}", kind_of(entry).noun, entry.key,
      entry.container.empty() ? "" : fmt::format("container {} in ", entry.container),
      draft.pod_sets[entry.job].name);
}

struct Overwrite {
  const Replaced* entry;
  std::string path;    // the path in the built JobSet
  std::string source;  // the source of the entry that is gone; "" for the runtime
};

// The entries that are gone are found by building the job again with its own settings, and without
// the plugins of frameworks and services. Few jobs have such entries, and others pay nothing for
// them.
std::vector<Overwrite> find_overwrites(const Draft& draft) {
  std::vector<Overwrite> found;
  if (draft.replaced.empty()) return found;
  std::vector<Explanation> notes;
  Draft said = prepare(draft.job, draft.runtime, draft.options, Journal(&notes), draft.stored);
  if (!said.errors.empty()) return found;
  for (const Plugin* plugin : active_plugins(said))
    if (plugin->source().starts_with("spec.")) plugin->enforce_pod_spec(said);
  std::set<std::tuple<std::size_t, std::string_view, std::string_view, std::string_view>> seen;
  for (const Replaced& entry : draft.replaced) {
    if (found.size() == kEnoughWarnings) break;
    if (!seen.insert({entry.job, entry.container, entry.list, entry.key}).second) continue;
    const kube::Json* desired = find_entry(said, entry);
    const kube::Json* built = find_entry(draft, entry);
    if (desired == nullptr || (built != nullptr && *built == *desired)) continue;
    std::string path = path_of(draft, entry);
    std::string source(source_at(notes, path));
    // The job sets the value by another of its fields.
    if (source.empty() && entry.source.starts_with("spec.")) continue;
    found.push_back({&entry, std::move(path), std::move(source)});
  }
  return found;
}

std::string text_for_runtime(const Overwrite& gone) {
  return fmt::format(
      "spec.template.{}: has no effect, because {} sets another one in its place: use another "
      "name, or leave it out",
      gone.path, gone.entry->source);
}

// Returns the path, in the job, of the entry that is gone.
std::string path_in_job(const TrainJob& job, const Overwrite& gone) {
  if (gone.source.empty()) return "spec.runtimeRef";
  if (auto patch = path_of_patch(job, gone.source)) return std::move(*patch);
  const bool is_list = gone.source.ends_with(".env");
  return kube::join_key(is_list ? gone.source : gone.source + ".env", gone.entry->key);
}

}  // namespace

void warn_about_overwrites(const Draft& draft, Built& built) {
  for (const Overwrite& gone : find_overwrites(draft)) {
    const std::string whose = gone.source.empty() ? fmt::format(" of {} \"{}\"", draft.runtime.kind,
                                                                draft.runtime.metadata.name)
                                                  : "";
    std::string text = fmt::format(
        "{}: {}{} has no effect, because {} sets another one in its "
        "place: use another name, or leave it out",
        path_in_job(draft.job, gone), title_of(draft, *gone.entry), whose, gone.entry->source);
    if (gone.source.empty())
      built.runtime_warnings.push_back({std::move(text), text_for_runtime(gone)});
    else
      built.warnings.push_back(std::move(text));
  }
}

std::vector<std::string> warn_about_overwrites_of_runtime(const Draft& draft) {
  std::vector<std::string> warnings;
  for (const Overwrite& gone : find_overwrites(draft)) warnings.push_back(text_for_runtime(gone));
  return warnings;
}

}  // namespace trainer::pipeline
