#include "tests/unit/fate/subject.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "kube/model/json_text.hh"
#include "kube/model/text.hh"

namespace trainer::fate {
namespace {

using kube::Json;

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The message is compared in small letters, since upstream writes spec.RuntimeRef, and without
// indexes and keys, which are behind a name: other brackets are around several errors.
std::string normal(std::string_view text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    const bool is_key = c == '[' && !out.empty() && is_word_character(out.back());
    if (c == ']' && depth > 0 && --depth == 0)
      out += ']';
    else if (depth == 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == '[' && (depth > 0 || is_key)) ++depth;
  }
  return out;
}

// The path is not the beginning of a longer path.
bool has_path(std::string_view text, std::string_view path) {
  for (std::size_t at = text.find(path); at != text.npos; at = text.find(path, at + 1)) {
    const std::string_view rest = text.substr(at + path.size());
    const bool goes_on = !rest.empty() && (is_word_character(rest[0]) || rest[0] == '[');
    const bool has_member = rest.size() > 1 && rest[0] == '.' && is_word_character(rest[1]);
    if (!goes_on && !has_member && (at == 0 || !is_word_character(text[at - 1]))) return true;
  }
  return false;
}

// The message has it as a quoted word of its own, and not in a value that it quotes.
bool is_whole_word(std::string_view message, std::string_view word) {
  return std::ranges::any_of(std::string_view("'\""), [&](char quote) {
    return message.find(fmt::format(" {1}{0}{1}", word, quote)) != message.npos;
  });
}

// Returns the path of the object around it; "" if there is none.
std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (path.ends_with("[]") && (dot == path.npos || dot < path.size() - 2))
    return path.substr(0, path.size() - 2);
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

void find_repeated(const Json& pod_spec, const std::string& where, std::vector<std::string>& out) {
  const auto check = [&](const Json& owner, const std::string& path, std::string_view list,
                         std::initializer_list<std::string_view> keys,
                         std::set<std::string>& seen) {
    for (const Json& item : owner.get_array(list)) {
      std::string key;
      for (const std::string_view name : keys) {
        const Json& value = item.get(name);
        key += (key.empty() ? "" : "/") +
               (value.is_null() ? std::string("TCP") : kube::print_json(value));
      }
      if (!seen.insert(key).second) out.push_back(fmt::format("{}.{}: {} twice", path, list, key));
    }
  };
  std::set<std::string> volumes;
  check(pod_spec, where, "volumes", {"name"}, volumes);
  std::set<std::string> containers;
  for (const char* list : {"initContainers", "containers"}) {
    check(pod_spec, where, list, {"name"}, containers);
    for (const Json& container : pod_spec.get_array(list)) {
      const std::string path = fmt::format("{}.{}[{}]", where, list, container.get_string("name"));
      std::set<std::string> names, paths, ports;
      check(container, path, "env", {"name"}, names);
      check(container, path, "volumeMounts", {"mountPath"}, paths);
      check(container, path, "ports", {"containerPort", "protocol"}, ports);
    }
  }
}

void find_pods(const Json& value, const std::string& where, std::vector<std::string>& out) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.as_array().size(); ++i)
      find_pods(value.as_array()[i], kube::join_index(where, i), out);
  } else if (value.is_object()) {
    if (value.get("containers").is_array()) find_repeated(value, where, out);
    for (const auto& [name, member] : value.as_object())
      find_pods(member, kube::join_field(where, name), out);
  }
}

std::string describe(const Field& field, const Json& document, const Outcome& outcome) {
  std::string text = fmt::format("{} in {}", field.path(), kube::print_json(document));
  for (const std::string& message : outcome.messages) text += "\n    said: " + message;
  return text;
}

// Returns whether the two documents lead to different things.
bool is_used(const Outcome& outcome, const Pair& pair, const Subject& subject, const Json& other) {
  if (!pair.marker.empty()) return contains(outcome.created, pair.marker);
  const Outcome second = subject.render(other);
  return !second.is_refused && second.created != outcome.created;
}

}  // namespace

void Outcome::refuse(const kube::FieldErrors& errors) {
  if (errors.empty()) return;
  is_refused = true;
  for (const kube::FieldError& error : errors) messages.push_back(error.to_string());
}

void Outcome::add(const std::vector<std::string>& warnings) {
  messages.insert(messages.end(), warnings.begin(), warnings.end());
}

bool contains(const Json& value, std::string_view text) {
  if (value.is_string()) return value.as_string().find(text) != std::string::npos;
  if (value.is_array())
    return std::ranges::any_of(value.as_array(),
                               [text](const Json& item) { return contains(item, text); });
  if (!value.is_object()) return false;
  return std::ranges::any_of(value.as_object(), [text](const auto& member) {
    return member.first.find(text) != std::string::npos || contains(member.second, text);
  });
}

std::vector<std::string> repeated_items(const Json& objects) {
  std::vector<std::string> out;
  find_pods(objects, "", out);
  return out;
}

bool is_named(const Outcome& outcome, std::string_view path, std::string_view detail) {
  const std::string whole = normal(path);
  std::string_view last = std::string_view(whole).substr(whole.rfind('.') + 1);
  while (last.ends_with("[]")) last.remove_suffix(2);
  std::vector<std::string_view> paths{whole};
  // This is its path in the JobSet that is made.
  const std::size_t in_jobset = whole.find("spec.replicatedjobs");
  if (in_jobset != 0 && in_jobset != whole.npos)
    paths.push_back(std::string_view(whole).substr(in_jobset));
  return std::ranges::any_of(outcome.messages, [&](const std::string& message) {
    const std::string text = normal(message);
    const bool is_without_effect = text.find("no effect") != text.npos;
    const bool has_detail = outcome.is_refused || is_without_effect || has_path(text, last) ||
                            (!detail.empty() && message.find(detail) != std::string::npos);
    if (outcome.is_refused && is_whole_word(message, detail)) return true;
    if (is_without_effect && !detail.empty() && has_path(message, detail)) return true;
    return std::ranges::any_of(paths, [&](std::string_view at) {
      if (has_path(text, at)) return true;
      int members = 0;
      for (at = parent_of(at); at.find('.') != at.npos; at = parent_of(at)) {
        members += at.ends_with("[]") ? 0 : 1;
        if ((members <= 1 || has_detail) && has_path(text, at)) return true;
      }
      return false;
    });
  });
}

std::vector<bool> used_together(const Subject& subject, std::span<const Field> fields,
                                Values& values) {
  Json document = subject.document;
  std::vector<std::string> markers;
  for (const Field& field : fields) {
    const Pair pair = values.pairs_for(*field.schema).front();
    if (!pair.marker.empty()) place(document, *subject.schema, field, values) = pair.one;
    markers.push_back(pair.marker);
  }
  const Outcome outcome = subject.render(document);
  const std::string created = outcome.is_refused ? "" : kube::print_json(outcome.created);
  std::vector<bool> used;
  for (const std::string& marker : markers)
    used.push_back(!marker.empty() && created.find(marker) != created.npos);
  return used;
}

Finding try_field(const Subject& subject, const Field& field, Values& values) {
  Json frame = subject.document;
  Json& slot = place(frame, *subject.schema, field, values);
  const auto with = [&](const Json& value) {
    slot = value;
    return frame;
  };
  const std::vector<Pair> pairs = values.pairs_for(*field.schema);
  std::vector<const Pair*> lost;
  Finding worst{Fate::kUntried, {}};
  for (const Pair& pair : pairs) {
    const Json document = with(pair.one);
    const Outcome outcome = subject.render(document);
    if (!outcome.is_refused && is_used(outcome, pair, subject, with(pair.other)))
      return {Fate::kUsed, {}};
    const std::string detail =
        pair.one.is_string() ? pair.one.as_string() : kube::print_json(pair.one);
    if (is_named(outcome, field.path(), detail))
      worst = {Fate::kNamed, {}};
    else if (!outcome.is_refused)
      lost.push_back(&pair);
    if (worst.fate == Fate::kNamed) continue;
    worst = {outcome.is_refused && lost.empty() ? Fate::kUntried : Fate::kLost,
             describe(field, document, outcome)};
  }
  // The two texts are equally good.
  for (const Pair* pair : lost)
    if ((pair->marker.empty() || pair == lost.front()) &&
        !subject.render(with(pair->other)).is_refused &&
        subject.live(with(pair->one)) != subject.live(with(pair->other)))
      return {Fate::kUsed, {}};
  return worst;
}

}  // namespace trainer::fate
