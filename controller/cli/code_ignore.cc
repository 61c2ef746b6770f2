#include "controller/cli/code_ignore.hh"

#include <algorithm>
#include <array>
#include <cctype>

#include "kube/model/text.hh"

namespace trainer {
namespace {

// A line may end in "\r\n", and in spaces, unless a backslash is before a space.
std::string_view without_end(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') continue;
    if (line[i] == '\\' && i + 1 < line.size()) ++i;
    end = i + 1;
  }
  return line.substr(0, end);
}

bool is_of_class(std::string_view name, char c) {
  struct Class {
    std::string_view name;
    int (*has)(int);
  };
  static constexpr std::array<Class, 12> kClasses = {{{"alnum", std::isalnum},
                                                      {"alpha", std::isalpha},
                                                      {"blank", std::isblank},
                                                      {"cntrl", std::iscntrl},
                                                      {"digit", std::isdigit},
                                                      {"graph", std::isgraph},
                                                      {"lower", std::islower},
                                                      {"print", std::isprint},
                                                      {"punct", std::ispunct},
                                                      {"space", std::isspace},
                                                      {"upper", std::isupper},
                                                      {"xdigit", std::isxdigit}}};
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80U && std::ranges::any_of(kClasses, [name, byte](const Class& each) {
           return each.name == name && each.has(byte) != 0;
         });
}

// Reads "[a-z_]" (git, wildmatch.c).
class Bracket {
 public:
  explicit Bracket(std::string_view text) : text_(text) {}

  // Returns whether the character is one of those. `end` is set behind the bracket; npos says that
  // it is not closed, and then it matches nothing.
  bool has(char c, std::size_t& end) {
    bool is_found = false;
    const bool is_negated = text_.size() > 1 && (text_[1] == '!' || text_[1] == '^');
    at_ = is_negated ? 2 : 1;
    end = std::string_view::npos;
    do {
      if (at_ >= text_.size()) return false;
      is_found |= read_item(c);
    } while (at_ < text_.size() && text_[at_] != ']');
    if (at_ >= text_.size()) return false;
    end = at_ + 1;
    return is_found != is_negated && c != '/';
  }

 private:
  char next() {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    return text_[at_++];
  }

  bool read_item(char c) {
    const auto close = text_.find(":]", at_);
    if (text_.substr(at_, 2) == "[:" && close != text_.npos) {
      const std::string_view name = text_.substr(at_ + 2, close - at_ - 2);
      at_ = close + 2;
      return is_of_class(name, c);
    }
    const auto first = static_cast<unsigned char>(next());
    const bool is_range = at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
    if (!is_range) return first == static_cast<unsigned char>(c);
    ++at_;
    const auto last = static_cast<unsigned char>(next());
    return first <= static_cast<unsigned char>(c) && static_cast<unsigned char>(c) <= last;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

// Positions that do not match are remembered, so that many stars cost no more than pattern by path.
class Glob {
 public:
  Glob(std::string_view pattern, std::string_view path)
      : pattern_(pattern), path_(path), failed_((pattern.size() + 1) * (path.size() + 1)) {}

  bool matches(std::size_t at, std::size_t from) {
    const std::size_t place = at * (path_.size() + 1) + from;
    if (failed_[place]) return false;
    const bool is_match = match_one(at, from);
    failed_[place] = !is_match;
    return is_match;
  }

 private:
  bool match_one(std::size_t at, std::size_t from) {
    if (at == pattern_.size()) return from == path_.size();
    if (pattern_[at] == '*') return match_star(at, from);
    if (from == path_.size()) return false;
    if (pattern_[at] == '?') return path_[from] != '/' && matches(at + 1, from + 1);
    if (pattern_[at] == '[') {
      std::size_t end = 0;
      const bool has = Bracket(pattern_.substr(at)).has(path_[from], end);
      return has && matches(at + end, from + 1);
    }
    if (pattern_[at] == '\\' && ++at == pattern_.size()) return false;
    return pattern_[at] == path_[from] && matches(at + 1, from + 1);
  }

  // Two stars match slashes, too, if they are a whole part of the path.
  bool match_star(std::size_t at, std::size_t from) {
    const std::size_t after = std::min(pattern_.find_first_not_of('*', at), pattern_.size());
    const bool is_part = after - at > 1 && (at == 0 || pattern_[at - 1] == '/') &&
                         (after == pattern_.size() || pattern_[after] == '/');
    // `a/**/b` matches `a/b`.
    if (is_part && after < pattern_.size() && matches(after + 1, from)) return true;
    for (std::size_t i = from; i <= path_.size(); ++i) {
      if (matches(after, i)) return true;
      if (i < path_.size() && path_[i] == '/' && !is_part) return false;
    }
    return false;
  }

  const std::string_view pattern_;
  const std::string_view path_;
  std::vector<bool> failed_;
};

bool ends_in_word(std::string_view stem, std::string_view word) {
  if (!stem.ends_with(word)) return false;
  const std::string_view before = stem.substr(0, stem.size() - word.size());
  return before.empty() || std::isalnum(static_cast<unsigned char>(before.back())) == 0;
}

// No path is longer, so a longer pattern matches none.
constexpr std::size_t kMaxPattern = 4096;

// A program's file is code: `tokenizer.py`, `token.py`.
bool is_of_data(std::string_view extension) {
  static constexpr std::array<std::string_view, 14> kData = {
      "",     ".txt",  ".json", ".yaml", ".yml", ".ini", ".cfg",
      ".env", ".conf", ".toml", ".csv",  ".db",  ".bak", ".old"};
  return std::ranges::find(kData, extension) != kData.end();
}

}  // namespace

std::optional<IgnoreRules::Rule> IgnoreRules::read_rule(std::string_view line) {
  line = without_end(line);
  if (line.empty() || line.starts_with('#')) return std::nullopt;
  Rule rule;
  if (line.starts_with('!')) {
    rule.is_negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    rule.is_for_directories = true;
    line.remove_suffix(1);
  }
  rule.is_for_names = line.find('/') == line.npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return std::nullopt;
  rule.pattern = std::string(line);
  // One matches what several in a row match.
  constexpr std::string_view kTwice = "**/**/";
  for (std::size_t at = 0; (at = rule.pattern.find(kTwice, at)) != std::string::npos;)
    rule.pattern.erase(at, kTwice.size() / 2);
  if (rule.pattern.size() > kMaxPattern) return std::nullopt;
  return rule;
}

void IgnoreRules::add(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto rule = read_rule(text.substr(0, end))) rules_.push_back(std::move(*rule));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<bool> IgnoreRules::is_ignored(std::string_view path, bool is_directory) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->is_for_directories && !is_directory) continue;
    if (matches_glob(rule->pattern, rule->is_for_names ? name : path)) return !rule->is_negated;
  }
  return std::nullopt;
}

bool matches_glob(std::string_view pattern, std::string_view path) {
  return Glob(pattern, path).matches(0, 0);
}

bool is_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 46> kPatterns = {".env*",
                                                                 "*.env",
                                                                 "*.pem",
                                                                 "*.key",
                                                                 "*.p12",
                                                                 "*.pfx",
                                                                 "*.jks",
                                                                 "*.keystore",
                                                                 "*.kdbx",
                                                                 "*.token",
                                                                 "id_rsa*",
                                                                 "id_dsa*",
                                                                 "id_ecdsa*",
                                                                 "id_ed25519*",
                                                                 ".netrc",
                                                                 "_netrc",
                                                                 ".pypirc",
                                                                 ".npmrc",
                                                                 ".htpasswd",
                                                                 ".git-credentials",
                                                                 ".aws",
                                                                 ".ssh",
                                                                 ".kube",
                                                                 ".gnupg",
                                                                 ".azure",
                                                                 ".docker",
                                                                 ".dockercfg",
                                                                 ".huggingface",
                                                                 "*.kubeconfig",
                                                                 "kubeconfig",
                                                                 "kubeconfig.y*ml",
                                                                 "kubeconfig-*",
                                                                 "*.ppk",
                                                                 ".pgpass",
                                                                 ".my.cnf",
                                                                 ".s3cfg",
                                                                 ".boto",
                                                                 "rclone.conf",
                                                                 "kaggle.json",
                                                                 "*.tfstate*",
                                                                 "*.tfvars",
                                                                 "*service*account*.json",
                                                                 "gcloud",
                                                                 ".databrickscfg",
                                                                 "tokens.json",
                                                                 "tokens.txt"};
  static constexpr std::array<std::string_view, 15> kWords = {
      "token",    "secret",    "secrets",     "credential",  "credentials",
      "password", "passwords", "apikey",      "apikeys",     "api_key",
      "api_keys", "api-key",   "private_key", "private-key", "access_key"};
  const std::string lower = kube::to_lower(name);
  if (std::ranges::any_of(kPatterns,
                          [&lower](std::string_view each) { return matches_glob(each, lower); }))
    return true;
  const std::size_t dot = std::min(lower.find_last_of('.'), lower.size());
  const bool has_stem = dot > 0;
  const std::string_view stem = has_stem ? std::string_view(lower).substr(0, dot) : lower;
  const std::string_view extension = has_stem ? std::string_view(lower).substr(dot) : "";
  return is_of_data(extension) && std::ranges::any_of(kWords, [stem](std::string_view word) {
           return ends_in_word(stem, word);
         });
}

}  // namespace trainer
