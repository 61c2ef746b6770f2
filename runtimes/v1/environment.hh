// The variables that the controller adds to the containers of a job's pods. Internal to
// runtimes/v1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::v1 {

class Environment {
 public:
  // The last value of a name counts.
  void set(std::string_view name, std::string value);
  void set_from(std::string_view name, kube::Json source);  // `valueFrom`

  // Adds the variables to a container, each name once. If the user has set one of them, the
  // controller's value takes its place: in a container the last entry of a name counts, and
  // upstream appends. A variable that refers to others by $(NAME) is placed behind them: Kubernetes
  // resolves only references to variables before it.
  void add_to(kube::Json& container) const;

 private:
  struct Variable {
    std::string name;
    kube::Json entry;
    bool has_references = false;
  };
  void put(Variable variable);
  std::size_t index_of(std::string_view name) const;  // variables_.size() where there is none
  // Returns for each variable the index in the user's list before which it is placed. `replaced`
  // has, for each of the user's variables, the index of the variable that takes its place, or
  // variables_.size().
  std::vector<std::size_t> places(const kube::Json::Array& own,
                                  const std::vector<std::size_t>& replaced) const;

  std::vector<Variable> variables_;
};

}  // namespace trainer::v1
