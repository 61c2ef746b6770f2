// Updates around each place of a rule that compares with the stored object.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/unit/api/random_documents.hh"
#include "tests/unit/api/rule_sites.hh"

namespace trainer::test {

// A rule may be `self == oldSelf`, `has(self.NAME) == has(oldSelf.NAME)`, that of a removed member,
// or one of an elastic TrainJob. Any other one that has `oldSelf` is an error: add its form here
// and in api/schema/transitions.cc.
class TransitionCases {
 public:
  explicit TransitionCases(unsigned seed)
      : random_(seed + 1), documents_(seed, RandomDocuments::Members::kDeclared) {}

  // For each place a stored object for every ten updates, at least two, with about `count` updates.
  // Each has what check_schema() and check_transitions() say of it.
  std::vector<kube::Json> make(const RuledKind& kind, int count);

 private:
  // The member that a rule is about: for `self == oldSelf` the value itself.
  struct Subject {
    RuleSite site;
    std::string place;  // "spec.runtimePatches[].manager"
    std::vector<std::string> parent;
    std::string member = {};
    const kube::Json* parent_schema = nullptr;
    bool is_removed = false;    // from the API: the object was stored before that
    bool is_key = false;        // a key of its item in a list map: a changed one makes another item
    bool is_by_status = false;  // it refuses only where the status of the object says so
    bool is_checked = true;     // check_schema() knows all rules of the value and in it
  };

  static Subject subject_of(const RuledKind& kind, const RuleSite& site);
  kube::Json stored_object(const RuledKind& kind, const Subject& subject, bool has_member);
  kube::Json update_of(const kube::Json& stored, const RuledKind& kind, const Subject& subject);
  static kube::Json answered(const kube::Json& update, const kube::Json& stored,
                             const RuledKind& kind, const Subject& subject);
  static bool is_refused_at(const kube::Json& update, const std::string& place);
  void change_member(kube::Json& parent, const Subject& subject);
  void change_part(kube::Json& value);
  kube::Json value_of(const kube::Json& schema, const std::string& name);
  template <class Item>
  Item& any_of(std::vector<Item>& items) {
    return items[static_cast<std::size_t>(up_to(static_cast<int>(items.size()) - 1))];
  }
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  std::mt19937 random_;
  RandomDocuments documents_;
};

}  // namespace trainer::test
