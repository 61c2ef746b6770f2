// Other clients use the same cluster: users, a queue that works like Kueue, and clients that delete
// what they should not delete.
#pragma once

#include <functional>
#include <string>

#include "tests/simulation/api_store.hh"
#include "tests/simulation/chance.hh"
#include "tests/simulation/oracle.hh"
#include "tests/simulation/script.hh"

namespace trainer::simulation {

// Schedules all events of a script at construction. After `busy` every job has the state that its
// user wants in the end, and no client writes any more.
class Users {
 public:
  using Trace = std::function<void(const std::string& what)>;
  Users(Timeline& timeline, ApiStore& store, Oracle& oracle, Chance& chance, const Script& script,
        seconds busy, Trace trace);

 private:
  void plan(const Lineage& lineage);
  void plan_obstacle(const Lineage& lineage);
  void plan_runtime(const Lineage& lineage);
  void plan_queue(const Lineage& lineage);
  void plan_mischief(const Lineage& lineage);
  void plan_sizes(const Lineage& lineage);
  void at(milliseconds when, std::function<void()> act);
  milliseconds any_time();

  void create(const kube::Resource& resource, kube::Json object);
  void set_suspended(const Lineage& lineage, bool is_suspended);
  void take_back_admission(const Lineage& lineage);
  void scale(const Lineage& lineage, int nodes);
  void label(const Lineage& lineage);
  void remove(std::string_view plural, const kube::ObjectKey& key);
  void remove_any_child(const Lineage& lineage, std::string_view plural);
  const kube::Resource& resource_of(const Lineage& lineage) const;
  kube::Json admission(const Lineage& lineage);

  Timeline& timeline_;
  ApiStore& store_;
  Oracle& oracle_;
  Chance& chance_;
  seconds busy_;
  Trace trace_;
  int counter_ = 0;
};

}  // namespace trainer::simulation
