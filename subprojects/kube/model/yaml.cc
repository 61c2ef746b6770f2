#include "kube/model/yaml.hh"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/yaml_scalar.hh"

namespace kube {
namespace {

constexpr int kMaxDepth = 200;  // the depth of parse_json()
// This limits the nodes that are copies of others, in all documents together.
constexpr std::size_t kMaxCopied = 1'000'000;
constexpr std::size_t kTextPerNode = 16;
// The parser holds a flow collection ("[a, {b: c}]") as tokens until it ends, 250 bytes for one of
// text. It does not hold collections that are written line by line.
constexpr std::size_t kMaxFlowMarks = 1'000'000;

Error error_at(const YAML::Mark& mark, std::string_view what) {
  return Error(ErrorCode::kParse, fmt::format("bad YAML at line {}, column {}: {}", mark.line + 1,
                                              mark.column + 1, what));
}

// This leaves the parser from within its callbacks, which allow no other way. It never passes
// parse_yaml_documents().
struct Refusal {
  Error error;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string_view what) {
  throw Refusal{error_at(mark, what)};
}

// This is a finished value, with the cost of its copy and its depth.
struct Node {
  Json value;
  std::size_t weight = 1;  // nodes, and one more for every kTextPerNode bytes
  int height = 0;
};

// Returns whether a document may begin at the mark: with its "---", or after the "..." of the one
// before. The parser also begins a new document at anything that cannot continue the one before.
bool begins_document(std::string_view text, const YAML::Mark& mark) {
  const std::size_t at = std::min(static_cast<std::size_t>(mark.pos), text.size());
  const std::size_t line_start = at - std::min(static_cast<std::size_t>(mark.column), at);
  if (at == text.size() && at == line_start) return true;
  if (at == line_start && text.substr(at, 3) == "---") return true;
  for (std::string_view above = text.substr(0, line_start); !above.empty();) {
    above.remove_suffix(1);  // its line break
    const std::size_t start = above.rfind('\n') + 1;
    const std::string_view line = above.substr(start);
    above = above.substr(0, start);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;
    return line.substr(0, 3) == "...";
  }
  return false;
}

// The parser returns the escapes \N and \_ (U+0085 and U+00A0) as these single bytes. All else in
// the text is UTF-8.
std::string repair_escapes(std::string_view text) {
  std::string repaired;
  for (auto bad = find_bad_utf8(text); bad != text.npos; bad = find_bad_utf8(text)) {
    repaired.append(text.substr(0, bad)).append(1, '\xc2').append(1, text[bad]);
    text.remove_prefix(bad + 1);
  }
  return repaired.append(text);
}

// Returns whether the quoted scalar that begins at `text` has its closing quote; true for scalars
// of any other style.
bool is_closed(std::string_view text) {
  while (!text.empty() && (text.front() == '!' || text.front() == '&')) {
    text.remove_prefix(std::min(text.find_first_of(" \t\r\n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return true;
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool is_doubled = quote == '\'' && text.substr(i, 2) == "''";
    const bool is_escape = quote == '"' && text[i] == '\\';
    if (is_doubled || is_escape) {
      ++i;
    } else if (text[i] == quote) {
      return true;
    }
  }
  return false;
}

class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::size_t max_documents, std::size_t max_nodes)
      : text_(text), max_documents_(max_documents), max_nodes_(max_nodes) {}

  // Returns the documents of the text. The parser closes a quoted scalar at the end of the text by
  // itself. Such a text is refused, since a forgotten quote would swallow all that follows.
  std::vector<Json> take() {
    const auto at = static_cast<std::size_t>(last_scalar_.pos);
    if (!is_closed(text_.substr(std::min(at, text_.size()))))
      refuse(last_scalar_, "the quoted text is not closed");
    return std::move(documents_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_ && !begins_document(text_, mark))
      refuse(mark,
             "expected the end of the document; is the indentation right, or a \"---\" missing?");
    // The parser does not advance when it meets a token that begins nothing, such as ",".
    if (started_ && mark.pos == document_start_) refuse(mark, "expected a value");
    document_start_ = mark.pos;
    started_ = true;
    anchors_.clear();
    open_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // In the last line the parser takes a word without ":" for a member without value.
    if (!open_.empty() && open_.back().name && open_.back().name_start == mark.pos)
      refuse(mark, "expected ':' after the member name");
    finish(mark, anchor, Node());
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) refuse(mark, "the alias stands within the value it names");
    charge(mark, at->second.weight);
    finish(mark, 0, at->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& scalar) override {
    last_scalar_ = mark;
    charge_tag(mark, tag);
    const std::string text = is_utf8(scalar) ? scalar : repair_escapes(scalar);
    if (is_merge_key(tag, text)) {
      open_.back().merging = true;
      return;
    }
    Node node;
    node.weight += text.size() / kTextPerNode;
    if (tag == "?") {
      node.value = resolve_plain_scalar(text);
    } else if (tag == "!") {
      node.value = text;
    } else {
      auto value = resolve_tagged_scalar(tag, text);
      if (!value) refuse(mark, value.error().message);
      node.value = std::move(*value);
    }
    if (!expects_name()) {
      // An explicit !!float keeps a whole number a double.
      const bool keep =
          tag != "?" && node.value.is_double() && std::isfinite(node.value.as_double());
      auto number = keep ? Result<Json>(node.value) : as_json_number(node.value);
      if (!number) refuse(mark, number.error().message);
      node.value = std::move(*number);
    }
    finish(mark, anchor, std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    charge_tag(mark, tag);
    enter(mark, anchor, false);
  }
  void OnSequenceEnd() override { leave(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    charge_tag(mark, tag);
    enter(mark, anchor, true);
  }
  void OnMapEnd() override { leave(); }

 private:
  // This is a sequence or mapping whose end has not been seen.
  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool is_map = false;
    Json::Array items;
    // The members are in order. The last of equal names counts, since "<<" may come second.
    JsonObject::Members members;
    std::set<std::string> written;    // the names that the mapping itself holds
    std::optional<std::string> name;  // the name of the next value
    int name_start = 0;
    bool merging = false;  // the next value belongs to "<<"
    std::size_t weight = 1;
    int height = 0;
  };

  bool expects_name() const {
    return !open_.empty() && open_.back().is_map && !open_.back().name && !open_.back().merging;
  }

  bool is_merge_key(std::string_view tag, std::string_view text) const {
    return expects_name() && text == "<<" && (tag == "?" || tag == "tag:yaml.org,2002:merge");
  }

  void enter(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    if (expects_name()) refuse(mark, "a member name must be a scalar");
    if (open_.empty()) expect_document(mark);
    if (open_.size() >= static_cast<std::size_t>(kMaxDepth))
      refuse(mark, fmt::format("collections are nested deeper than {}", kMaxDepth));
    open_.push_back(Open{mark, anchor, is_map});
  }

  void leave() {
    Open done = std::move(open_.back());
    open_.pop_back();
    Node node;
    node.weight = done.weight;
    node.height = done.height + 1;
    node.value =
        done.is_map ? Json(JsonObject::of(std::move(done.members))) : Json(std::move(done.items));
    finish(done.mark, done.anchor, std::move(node));
  }

  // Every copy counts towards the limit, also one that is dropped later.
  void charge(const YAML::Mark& mark, std::size_t weight) {
    copied_ += weight;
    if (copied_ > kMaxCopied)
      refuse(mark,
             "anchors, aliases, merge keys and tags multiply the text beyond 1,000,000 nodes");
  }

  // A "%TAG" of a megabyte is repeated in every tag that names it.
  void charge_tag(const YAML::Mark& mark, std::string_view tag) {
    charge(mark, tag.size() / kTextPerNode);
  }

  // Called before a document that is more than null is built.
  void expect_document(const YAML::Mark& mark) const {
    if (documents_.size() >= max_documents_)
      refuse(mark, "expected one document, and this is the second");
  }

  void finish(const YAML::Mark& mark, YAML::anchor_t anchor, Node node) {
    if (++finished_ > max_nodes_)
      refuse(mark, fmt::format("there are more than {} nodes", max_nodes_));
    if (anchor != 0) {
      charge(mark, node.weight);
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      if (node.value.is_null()) return;
      expect_document(mark);
      documents_.push_back(std::move(node.value));
      return;
    }
    Open& parent = open_.back();
    parent.weight += node.weight;
    parent.height = std::max(parent.height, node.height);
    if (open_.size() + static_cast<std::size_t>(node.height) > static_cast<std::size_t>(kMaxDepth))
      refuse(mark, fmt::format("collections are nested deeper than {}", kMaxDepth));
    if (!parent.is_map) {
      parent.items.push_back(std::move(node.value));
    } else if (parent.merging) {
      parent.merging = false;
      charge(mark, node.weight);
      merge(mark, parent, node.value);
    } else if (parent.name) {
      parent.members.emplace_back(std::move(*parent.name), std::move(node.value));
      parent.name.reset();
    } else {
      parent.name = read_name(mark, parent, node.value);
      parent.name_start = mark.pos;
    }
  }

  static std::string read_name(const YAML::Mark& mark, Open& parent, const Json& value) {
    auto name = member_name(value);
    if (!name)
      refuse(mark,
             fmt::format("a member name must be a string, not {}; quote it", value.type_name()));
    if (!parent.written.insert(*name).second)
      refuse(mark, fmt::format("the mapping has the member {} twice", print_json(*name)));
    return std::move(*name);
  }

  // This is the rule of go-yaml v2: the members count as if they were written here, and the first
  // of several mappings wins.
  static void merge(const YAML::Mark& mark, Open& parent, const Json& value) {
    const auto add = [&](const Json& mapping) {
      if (!mapping.is_object()) refuse(mark, "\"<<\" takes a mapping or a list of mappings");
      for (const auto& member : mapping.as_object()) parent.members.push_back(member);
    };
    if (!value.is_array()) return add(value);
    const Json::Array& mappings = value.as_array();
    std::for_each(mappings.rbegin(), mappings.rend(), add);
  }

  const std::string_view text_;
  const std::size_t max_documents_;
  const std::size_t max_nodes_;
  std::size_t finished_ = 0;
  bool started_ = false;
  int document_start_ = 0;
  YAML::Mark last_scalar_;
  std::vector<Json> documents_;
  std::vector<Open> open_;
  // This is no hash table, since clearing one takes as long as its largest size so far requires.
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t copied_ = 0;
};

bool is_flow_mark(char c) {
  return c == '[' || c == ']' || c == '{' || c == '}' || c == ',';
}

Result<std::vector<Json>> read_documents(std::string_view text, std::size_t max_documents,
                                         const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kParse, "bad YAML: {} bytes, more than the limit of {}", text.size(),
                limits.max_bytes);
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  // All byte order marks are removed: the parser would drop one that is left, and its places would
  // be wrong by that length.
  while (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    text.remove_prefix(kByteOrderMark.size());
  // The parser would take a NUL for a sign of UTF-16, and accept bad UTF-8.
  if (!is_utf8(text)) return fail(ErrorCode::kParse, "bad YAML: the text is not UTF-8");
  if (text.find('\0') != text.npos)
    return fail(ErrorCode::kParse, "bad YAML: the text holds a NUL byte");
  // JSON is YAML, except for its escaped surrogate pairs.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') {
    const JsonLimits json{.max_values = limits.max_nodes};
    if (auto value = parse_json(text, json)) return std::vector<Json>{std::move(*value)};
  }
  const std::size_t max_marks = std::min(kMaxFlowMarks, limits.max_nodes);
  if (count_flow_marks(text) > max_marks) {
    return fail(ErrorCode::kParse,
                "bad YAML: more than {} brackets, braces and commas; write the items "
                "of long lists on lines of their own, after \"- \", or split the text",
                max_marks);
  }
  Builder builder(text, max_documents, limits.max_nodes);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refusal& refusal) {
    return tl::unexpected(refusal.error);
  } catch (const YAML::Exception& exception) {
    return tl::unexpected(error_at(exception.mark, exception.msg));
  }
}

}  // namespace

std::size_t count_flow_marks(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_flow_mark));
}

Result<std::vector<Json>> parse_yaml_documents(std::string_view text) {
  return read_documents(text, std::numeric_limits<std::size_t>::max(), {});
}

Result<Json> parse_yaml(std::string_view text, const YamlLimits& limits) {
  auto documents = read_documents(text, 1, limits);
  if (!documents) return tl::unexpected(documents.error());
  if (documents->empty())
    return fail(ErrorCode::kParse, "bad YAML: expected one document, found none");
  return std::move(documents->front());
}

}  // namespace kube
