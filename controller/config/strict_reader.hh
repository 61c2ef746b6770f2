// Reads an object member by member and refuses unknown members.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

// One object of a configuration file. Read every member with one of the functions below, then call
// finish(), which reports the members that were not read. A null member counts as absent, as
// everywhere in the Kubernetes API. Errors are added to `errors`, each with its full path; the
// target then keeps its value.
class StrictReader {
 public:
  // `object` may be nullptr: then all members are absent.
  StrictReader(const kube::Json* object, std::string path, kube::FieldErrors& errors);

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
    const auto errors_before = errors_.size();
    read(name, value);
    if (errors_.size() == errors_before) target = std::move(value);
  }
  // `each(key, value, path)` for every member of a map.
  void read_map(
      std::string_view name,
      const std::function<void(const std::string&, const kube::Json&, const std::string&)>& each);
  // The reader of a member that is an object itself; the caller calls its finish().
  StrictReader object(std::string_view name);

  bool has(std::string_view name) { return find(name) != nullptr; }
  std::string path_of(std::string_view name) const { return kube::join_field(path_, name); }
  void finish();

 private:
  const kube::Json* find(std::string_view name);
  void wrong_type(std::string_view name, const kube::Json& value, std::string_view desired);

  const kube::Json* object_;
  std::string path_;
  kube::FieldErrors& errors_;
  std::vector<std::string> known_;
};

}  // namespace trainer
