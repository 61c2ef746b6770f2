// Files of `.gitignore` and `.trainerignore` say which files of a folder are left out. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// These are the patterns of one folder, in the syntax and with the meaning of gitignore(5).
class IgnoreRules {
 public:
  // Adds the lines of one file; they count before those that were added earlier.
  void add(std::string_view text);

  // `path` begins at the folder of the rules: "src/model.py". The last pattern that matches it
  // decides. nullopt says that none does.
  std::optional<bool> is_ignored(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string pattern;
    bool is_negated = false;
    bool is_for_directories = false;
    bool is_for_names = false;  // it matches the last part of the path only
  };
  static std::optional<Rule> read_rule(std::string_view line);

  std::vector<Rule> rules_;
};

// Returns whether a pattern of gitignore(5) matches the whole path: `*` and `?` match no slash.
bool matches_glob(std::string_view pattern, std::string_view path);

// Returns whether a file or folder of this name probably holds a secret: it never goes into the
// code of a job.
bool is_secret_name(std::string_view name);

}  // namespace trainer
