#include "controller/cli/completion.hh"

#include <algorithm>
#include <optional>
#include <utility>

namespace trainer {
namespace {

using From = Completion::Source;

// bash makes three words of "--output=json".
std::vector<std::string> joined(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "=" || result.empty() || !result.back().starts_with("--")) {
      result.push_back(words[i]);
      continue;
    }
    result.back() += "=";
    if (i + 1 < words.size()) result.back() += words[++i];
  }
  return result;
}

bool has_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

bool is_named(const CLI::Option& option, std::string_view name) {
  const auto& names = option.get_lnames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_shown(const CLI::Option& option) {
  return !option.get_group().empty();
}

class Walk {
 public:
  explicit Walk(const CLI::App& app) : app_(&app) {}

  // Takes a word that is complete.
  void take(const std::string& word) {
    if (const CLI::Option* option = std::exchange(open_, nullptr)) {
      note(*option, word);
    } else if (!is_rest_ && word == "--") {
      is_rest_ = true;
    } else if (!is_rest_ && word.size() > 1 && word.starts_with('-')) {
      take_option(word);
    } else if (const CLI::App* command = is_rest_ ? nullptr : find_command(word)) {
      is_local_ = is_local_ || command->get_name() == "local";
      app_ = command;
      arguments_.clear();
    } else {
      arguments_.push_back(word);
    }
  }

  Completion complete(const std::string& word) {
    result_.is_local = is_local_;
    result_.begun = word;
    const std::size_t equals = word.find('=');
    if (open_ != nullptr) {
      complete_value(*open_);
    } else if (is_rest_) {
      result_.source = From::kFiles;
    } else if (word.starts_with("--") && equals != std::string::npos) {
      result_.before = word.substr(0, equals + 1);
      result_.begun = word.substr(equals + 1);
      const CLI::Option* option = find_option(word.substr(0, equals));
      if (option != nullptr && has_value(*option)) complete_value(*option);
    } else if (word.starts_with('-')) {
      add_options();
    } else if (!app_->get_subcommands({}).empty()) {
      add_commands();
    } else {
      complete_argument();
    }
    return std::move(result_);
  }

 private:
  const CLI::Option* find_option(const std::string& name) const {
    return app_->get_option_no_throw(name);
  }

  const CLI::App* find_command(const std::string& word) const {
    for (const CLI::App* each : app_->get_subcommands({}))
      if (each->check_name(word)) return each;
    return nullptr;
  }

  void take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const CLI::Option* option = find_option(word.substr(0, equals));
    const bool is_short = !word.starts_with("--");
    if (option == nullptr && is_short) {  // "-nteam"
      option = find_option(word.substr(0, 2));
      if (option != nullptr && has_value(*option)) note(*option, word.substr(2));
    } else if (option != nullptr && has_value(*option)) {
      if (equals == std::string::npos)
        open_ = option;
      else
        note(*option, word.substr(equals + 1));
    }
  }

  void note(const CLI::Option& option, const std::string& value) {
    if (is_named(option, "kubeconfig")) result_.cluster.kubeconfig = value;
    if (is_named(option, "context")) result_.cluster.context = value;
    if (is_named(option, "namespace")) result_.cluster.ns = value;
    if (is_named(option, "state")) result_.state = value;
  }

  void add(std::string word, std::string description) {
    if (word.starts_with(result_.begun))
      result_.candidates.push_back({std::move(word), std::move(description)});
  }

  void add_commands() {
    for (const CLI::App* each : app_->get_subcommands({}))
      if (!each->get_group().empty()) add(each->get_name(), each->get_description());
  }

  void add_options() {
    for (const CLI::Option* each : app_->get_options()) {
      if (!is_shown(*each)) continue;
      for (const std::string& name : each->get_lnames()) add("--" + name, each->get_description());
      if (each->get_lnames().empty())
        for (const std::string& name : each->get_snames()) add("-" + name, each->get_description());
    }
  }

  // The parser says "TEXT:{json,yaml}" of an option with these values.
  void complete_value(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}', open == std::string::npos ? 0 : open);
    if (is_named(option, "namespace")) {
      result_.source = From::kNamespaces;
    } else if (type.starts_with("FILE")) {
      result_.source = From::kFiles;
    } else if (type.starts_with("DIR")) {
      result_.source = From::kDirectories;
    } else if (open != std::string::npos && close != std::string::npos) {
      std::string values = type.substr(open + 1, close - open - 1) + ",";
      for (std::size_t comma; (comma = values.find(',')) != std::string::npos;) {
        add(values.substr(0, comma), "");
        values.erase(0, comma + 1);
      }
    }
  }

  // The last argument may be repeated where the parser takes several words for it.
  void complete_argument() {
    std::size_t place = arguments_.size();
    for (const CLI::Option* each : app_->get_options()) {
      if (!each->get_positional()) continue;
      const auto words = static_cast<std::size_t>(std::max(each->get_items_expected_max(), 1));
      if (place >= words) {
        place -= words;
        continue;
      }
      const std::string name = each->get_name(true);
      if (name == "JOB") {
        result_.source = From::kJobs;
      } else if (name == "NAME" && !arguments_.empty() && is_after_job()) {
        result_.source = From::kJobs;
        result_.kind = arguments_.front();
      } else if (name == "FILE") {
        result_.source = From::kFiles;
      } else {
        complete_value(*each);
      }
      return;
    }
  }

  bool is_after_job() const {
    const auto options = app_->get_options();
    return std::any_of(options.begin(), options.end(), [](const CLI::Option* each) {
      return each->get_positional() && each->get_name(true) == "JOB";
    });
  }

  const CLI::App* app_;
  const CLI::Option* open_ = nullptr;  // the next word is its value
  bool is_rest_ = false;               // after "--"
  bool is_local_ = false;
  std::vector<std::string> arguments_;
  Completion result_;
};

}  // namespace

Completion complete_words(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> all = joined(words);
  if (all.empty()) all.emplace_back();
  Walk walk(app);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) walk.take(all[i]);
  return walk.complete(all.back());
}

}  // namespace trainer
