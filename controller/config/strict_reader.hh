// An object is read member by member, and unknown members are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// These are the errors of a file (it is refused), and its settings that have no effect.
struct Findings {
  kube::FieldErrors errors;
  std::vector<std::string> warnings;
};

// This is one object of a configuration file. Read every member with one of the functions below,
// then call finish(), which reports the members that were not read. A null member counts as absent,
// like everywhere in the Kubernetes API. Errors are added to `findings`, each with its full path;
// the target then keeps its value.
class StrictReader {
 public:
  // `object` may be nullptr: then all members are absent.
  StrictReader(const kube::Json* object, std::string path, Findings& findings);

  void read(std::string_view name, bool& target);
  void read(std::string_view name, std::string& target);
  void read(std::string_view name, std::int32_t& target);
  void read(std::string_view name, double& target);
  void read(std::string_view name, std::chrono::milliseconds& target);
  void read(std::string_view name, std::vector<std::string>& target);
  template <class T>
  void read(std::string_view name, std::optional<T>& target) {
    if (find(name) == nullptr) return;
    T value{};
    const auto errors_before = findings_.errors.size();
    read(name, value);
    if (findings_.errors.size() == errors_before) target = std::move(value);
  }
  // Calls `each(key, value, name)` for every member of a map; `name` is "map[key]", for refuse and
  // warn.
  void read_map(
      std::string_view name,
      const std::function<void(const std::string&, const kube::Json&, const std::string&)>& each);
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
  // Adds an invalid member, and a warning "path: what".
  template <class... Args>
  void refuse(std::string_view name, kube::Json value, fmt::format_string<Args...> detail,
              Args&&... args) {
    add(kube::invalid(path_of(name), std::move(value),
                      fmt::format(detail, std::forward<Args>(args)...)));
  }
  template <class... Args>
  void warn(std::string_view name, fmt::format_string<Args...> what, Args&&... args) {
    findings_.warnings.push_back(path_of(name) + ": " +
                                 fmt::format(what, std::forward<Args>(args)...));
  }

 private:
  const kube::Json* find(std::string_view name);
  // Returns the member, or nullptr if it is absent or, after an error, of another type.
  const kube::Json* find(std::string_view name, bool (kube::Json::*is_desired)() const,
                         std::string_view desired);

  const kube::Json* object_;
  std::string path_;
  Findings& findings_;
  std::vector<std::string> known_;
};

}  // namespace trainer
