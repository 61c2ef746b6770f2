// Reads an object member by member and refuses unknown members.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// A file with errors is refused. Warnings name settings that have no effect.
struct Findings {
  kube::FieldErrors errors;
  std::vector<std::string> warnings;
};

// Reads a value of one type. Returns what is wrong with it, or "".
std::string read_value(const kube::Json& value, bool& target);
std::string read_value(const kube::Json& value, std::string& target);
std::string read_value(const kube::Json& value, std::int32_t& target);
std::string read_value(const kube::Json& value, double& target);
std::string read_value(const kube::Json& value, std::chrono::milliseconds& target);
std::string read_value(const kube::Json& value, std::vector<std::string>& target);
template <class T>
std::string read_value(const kube::Json& value, std::optional<T>& target) {
  return read_value(value, target.emplace());
}

struct NoCheck {
  std::string operator()(const auto&) const { return {}; }
};

// Reads one object of a configuration file, as the visitors of api/describe read one of the API,
// and refuses members that it does not know. Read every member with one of the functions below,
// then call finish(), which reports the members that were not read. A null member counts as absent,
// as everywhere in the Kubernetes API. Errors are added to `findings`, each with its full path.
class StrictReader {
 public:
  // `object` may be nullptr: then all members are absent.
  StrictReader(const kube::Json* object, std::string path, Findings& findings);

  // Reads a member, whose target keeps its value where it is absent. `check(value)` returns what is
  // wrong with the value, or with an item of a list, or "".
  template <class Value, class Check = NoCheck>
  void read(std::string_view name, Value& target, const Check& check = {}) {
    const kube::Json* value = find(name);
    if (value == nullptr) return;
    if (std::string problem = read_value(*value, target); !problem.empty())
      return report(name, *value, std::move(problem));
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      for (std::size_t i = 0; i < target.size(); ++i)
        report(kube::join_index(name, i), target[i], check(target[i]));
    } else {
      report(name, *value, check(target));
    }
  }
  // Reads the values of a map in the same way.
  template <class Value, class Check = NoCheck>
  void read_map(std::string_view name, std::map<std::string, Value, std::less<>>& target,
                const Check& check = {}) {
    const kube::Json* map = find(name);
    if (map == nullptr) return;
    if (!map->is_object()) return refuse(name, *map, "must be a map");
    for (const auto& [key, value] : map->as_object()) {
      std::string problem = read_value(value, target[key]);
      if (problem.empty()) problem = check(target[key]);
      report(kube::join_key(name, key), value, std::move(problem));
    }
  }
  // Reads a member that is an object itself: `read_members(reader, target)`, then finish().
  template <class ReadMembers, class T>
  void object(std::string_view name, const ReadMembers& read_members, T& target) {
    StrictReader reader(find(name), path_of(name), findings_);
    read_members(reader, target);
    reader.finish();
  }
  void finish();

  bool has(std::string_view name) { return find(name) != nullptr; }
  std::string path_of(std::string_view name) const { return kube::join_field(path_, name); }
  void add(kube::FieldError error) { findings_.errors.push_back(std::move(error)); }
  // These report an invalid member, and a warning "path: what".
  void refuse(std::string_view name, kube::Json value, std::string detail) {
    add(kube::invalid(path_of(name), std::move(value), std::move(detail)));
  }
  void warn(std::string_view name, std::string_view what) {
    findings_.warnings.push_back(fmt::format("{}: {}", path_of(name), what));
  }

 private:
  const kube::Json* find(std::string_view name);
  void report(std::string_view name, const kube::Json& value, std::string problem) {
    if (!problem.empty()) refuse(name, value, std::move(problem));
  }

  const kube::Json* object_;
  std::string path_;
  Findings& findings_;
  std::vector<std::string> known_;
};

}  // namespace trainer
