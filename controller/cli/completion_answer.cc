#include "controller/cli/completion_answer.hh"

#include <algorithm>
#include <ostream>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/job_list.hh"
#include "controller/cli/job_table.hh"
#include "controller/cli/local_daemon.hh"
#include "kube/client/with_deadline.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

// A person waits for the answer.
constexpr kube::Milliseconds kLimit{1'500};
constexpr std::size_t kMaxPages = 2;

constexpr const char* kBash = R"(# bash completion of trainer: source <(trainer completion bash)
_trainer() {
  local current=${COMP_WORDS[COMP_CWORD]} line
  [ "$current" != = ] || current=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files)
        compopt -o filenames 2> /dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
      :dirs)
        compopt -o filenames 2> /dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _trainer trainer kubectl-trainer
)";

constexpr const char* kZsh = R"(#compdef trainer kubectl-trainer
# zsh completion of trainer: source <(trainer completion zsh), or a file _trainer in a folder of $fpath
_trainer() {
  local line
  local -a candidates
  while IFS= read -r line; do
    case $line in
      :files) compset -P '--*='; _files ;;
      :dirs) compset -P '--*='; _files -/ ;;
      *) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done < <(${~words[1]} __complete zsh "${(@Q)words[2,CURRENT]}" 2> /dev/null)
  (( ! ${#candidates} )) || _describe -V trainer candidates
}
if [[ ${funcstack[1]} == _trainer ]]; then
  _trainer "$@"
else
  compdef _trainer trainer kubectl-trainer
fi
)";

// Another program's text is one line here.
std::string one_line_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

void add_job_candidate(const Completion& asked, const JobLine& line, bool is_first_kind,
                       std::vector<Candidate>& found) {
  std::string description = line.state.empty() ? "not started" : line.state;
  if (!line.reason.empty()) description += " (" + line.reason + ")";
  if (!asked.kind.empty()) {
    if (kube::to_lower(asked.kind).starts_with(line.kind))
      found.push_back({line.key.name, std::move(description)});
    return;
  }
  // Local mode's subcommands take names alone.
  if (is_first_kind && (asked.is_local || asked.begun.find('/') == std::string::npos))
    found.push_back({line.key.name, std::move(description)});
  else if (!asked.is_local)
    found.push_back({line.name(), std::move(description)});
}

Task<std::vector<Candidate>> read_job_candidates(kube::ApiClient& client, const Registry& registry,
                                                 std::string ns, const Completion& asked) {
  const auto first = std::find_if(registry.begin(), registry.end(), is_job_kind);
  std::vector<Candidate> found;
  OnJob on_job = [&](const KindRegistration& kind, const Json& object) {
    if (owner_among_jobs(registry, kube::ObjectMeta::of(object)) == nullptr)
      add_job_candidate(asked, read_job_line(kind, object), &kind == &*first, found);
  };
  co_await read_jobs(client, registry, std::move(ns), kMaxPages, std::move(on_job));
  co_return found;
}

Task<std::vector<Candidate>> read_namespaces(kube::ApiClient& client) {
  std::vector<Candidate> found;
  const auto all = co_await list_all(client, kube::kNamespaces, "", "");
  if (!all) co_return found;
  for (const Json& each : *all) found.push_back({kube::ObjectMeta::of(each).name, ""});
  co_return found;
}

// Returns nothing if the cluster cannot be asked, or not in time.
std::vector<Candidate> ask_cluster(const Completion& asked, const Registry& registry) {
  ClusterOptions options = asked.cluster;
  if (asked.is_local)
    options.kubeconfig =
        LocalDaemon(asked.state.empty() ? default_local_state().string() : asked.state)
            .kubeconfig();
  const auto cluster = Cluster::connect(options);
  if (!cluster) return {};
  kube::ApiClient& client = (*cluster)->client();
  auto task = asked.source == Completion::Source::kJobs
                  ? read_job_candidates(client, registry, (*cluster)->ns(), asked)
                  : read_namespaces(client);
  auto found = (*cluster)->run(kube::with_deadline(kLimit, std::move(task)));
  if (!found) return {};
  std::erase_if(*found,
                [&asked](const Candidate& each) { return !each.word.starts_with(asked.begun); });
  return std::move(*found);
}

}  // namespace

int run_completion(const std::string& interpreter, Console& console) {
  console.out << (interpreter == "zsh" ? kZsh : kBash);
  return kExitDone;
}

int answer_completion(const CLI::App& app, const std::vector<std::string>& words,
                      const Registry& registry, Console& console) {
  if (words.empty()) return kExitUsage;
  Completion asked = complete_words(app, {words.begin() + 1, words.end()});
  if (asked.source == Completion::Source::kFiles ||
      asked.source == Completion::Source::kDirectories) {
    console.out << (asked.source == Completion::Source::kFiles ? ":files\n" : ":dirs\n");
    return kExitDone;
  }
  if (asked.source != Completion::Source::kKnown) asked.candidates = ask_cluster(asked, registry);
  // bash has split the word at "=", and takes the place of the last part.
  const std::string before = words.front() == "bash" ? "" : asked.before;
  for (const Candidate& each : asked.candidates)
    console.out << before << each.word << '\t' << one_line_of(each.description) << '\n';
  return kExitDone;
}

}  // namespace trainer
