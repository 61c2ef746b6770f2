#include "kube/model/exec_limits.hh"

#include <fmt/format.h>

#include <array>
#include <unordered_map>
#include <utility>

#include "kube/model/expansion.hh"
#include "kube/model/saturating.hh"

namespace kube {

namespace {

// The lengths are those of variables, by name. A variable with a source has some value, whose
// length is not known and counts as 0.
using Lengths = std::unordered_map<std::string_view, std::int64_t>;

// A text that is no variable stays unchanged.
std::int64_t expanded_length(std::string_view text, const Lengths& lengths) {
  constexpr std::int64_t kMarks = sizeof("$()") - 1;
  std::int64_t length = 0;
  ExpansionReader reader(text);
  while (const auto part = reader.next()) {
    const auto known = part->is_reference ? lengths.find(part->text) : lengths.end();
    const std::int64_t written = std::ssize(part->text) + (part->is_reference ? kMarks : 0);
    length = saturating_add(length, known == lengths.end() ? written : known->second);
  }
  return length;
}

constexpr std::array<std::string_view, 3> kProbes = {"startupProbe", "readinessProbe",
                                                     "livenessProbe"};

// The kubelet expands a command in one of these ways.
enum class Expansion {
  kFull,    // command and args: by the final values of the variables
  kStatic,  // a probe: by the values as they are written
  kNone,    // a lifecycle hook
};

class Search {
 public:
  explicit Search(std::size_t most) : most_(most) {}

  std::vector<LongExecString> run(const Json& pod_spec) {
    for (const std::string_view list : {"containers", "initContainers"}) {
      const Json::Array& containers = pod_spec.get_array(list);
      for (std::size_t i = 0; i < containers.size() && found_.size() < most_; ++i) {
        at_ = {};
        at_.list = list;
        at_.container = i;
        at_.name = containers[i].get_string("name");
        search(containers[i]);
      }
    }
    return std::move(found_);
  }

 private:
  // In most containers no string refers to a variable, so no lengths are kept.
  void search(const Json& container) {
    const std::size_t before = found_.size();
    refers_ = false;
    is_expanding_ = false;
    search_strings(container);
    if (!refers_) return;
    found_.resize(before);
    is_expanding_ = true;
    full_.clear();
    written_.clear();
    search_strings(container);
  }

  void search_strings(const Json& container) {
    search_variables(container);
    for (const std::string_view list : {"command", "args"})
      search_words(container, "", list, Expansion::kFull);
    for (const std::string_view probe : kProbes)
      search_words(container.get(probe).get("exec"), probe, "command", Expansion::kStatic);
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kHooks = {
        {{"postStart", "lifecycle.postStart"}, {"preStop", "lifecycle.preStop"}}};
    for (const auto& [member, hook] : kHooks)
      search_words(container.get("lifecycle").get(member).get("exec"), hook, "command",
                   Expansion::kNone);
  }

  // A variable may refer to those before it.
  void search_variables(const Json& container) {
    const Json::Array& env = container.get_array("env");
    at_.hook = "";
    at_.list_of_strings = "env";
    for (std::size_t i = 0; i < env.size(); ++i) {
      const std::string_view value = env[i].get_string("value");
      const std::int64_t length = length_of(value, full_);
      at_.index = i;
      at_.variable = env[i].get_string("name");
      const auto own = static_cast<std::int64_t>(exec_bytes(at_.variable, ""));
      add(saturating_add(own, length), exec_bytes(at_.variable, value));
      if (!is_expanding_) continue;
      full_.insert_or_assign(at_.variable, length);
      written_.insert_or_assign(at_.variable, static_cast<std::int64_t>(value.size()));
    }
  }

  void search_words(const Json& owner, std::string_view hook, std::string_view list,
                    Expansion expansion) {
    const Json::Array& words = owner.get_array(list);
    at_.hook = hook;
    at_.list_of_strings = list;
    at_.variable = "";
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!words[i].is_string()) continue;
      const std::string_view word = words[i].as_string();
      const std::int64_t length =
          expansion == Expansion::kNone
              ? std::ssize(word)
              : length_of(word, expansion == Expansion::kFull ? full_ : written_);
      at_.index = i;
      add(saturating_add<std::int64_t>(length, 1), exec_bytes(word));
    }
  }

  std::int64_t length_of(std::string_view text, const Lengths& lengths) {
    if (is_expanding_) return expanded_length(text, lengths);
    refers_ = refers_ || text.find("$(") != text.npos;
    return std::ssize(text);
  }

  void add(std::int64_t bytes, std::size_t written) {
    if (bytes <= static_cast<std::int64_t>(kMaxExecStringBytes) || found_.size() == most_) return;
    at_.bytes = bytes;
    at_.is_expanded = written <= kMaxExecStringBytes;
    found_.push_back(at_);
  }

  const std::size_t most_;
  LongExecString at_{};        // the string that is checked
  bool refers_ = false;        // some string of this container may have references
  bool is_expanding_ = false;  // they are replaced
  Lengths full_;               // the lengths of this container's variables
  Lengths written_;            // before references in them are replaced
  std::vector<LongExecString> found_;
};

}  // namespace

std::string LongExecString::path() const {
  return fmt::format("{}{}{}[{}]{}", hook, hook.empty() ? "" : ".exec.", list_of_strings, index,
                     variable.empty() ? "" : ".value");
}

std::string LongExecString::text(std::string_view container_title, std::string_view whose) const {
  const std::string what =
      !variable.empty() ? fmt::format("variable {}", variable)
      : !hook.empty()   ? fmt::format("word {} of the command of {}", index + 1, hook)
                        : fmt::format("{} {} of the command line",
                                    list_of_strings == "args" ? "argument" : "word", index + 1);
  return fmt::format(
      "{} of {}{} has {} bytes{}, and Linux starts no process with more than {} in one: bring the "
      "content in a file of the image, a ConfigMap or another volume, or shorten it",
      what, container_title, whose, bytes,
      is_expanded ? " once the variables in it are replaced" : "", kMaxExecStringBytes);
}

std::vector<LongExecString> find_long_exec_strings(const Json& pod_spec, std::size_t most) {
  return Search(most).run(pod_spec);
}

}  // namespace kube
