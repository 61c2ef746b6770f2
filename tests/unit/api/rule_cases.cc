// Prints objects around each rule of the schemas that has a predicate, valid and invalid ones, with
// the result of check_schema(); and of the rules that compare with the stored object, stored
// objects with updates. tests/cluster/rules_test.py sends them to the API server.
//
// usage: rule_cases SEED COUNT    COUNT objects or updates for each place with a rule
#include <cstdlib>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

#include "api/schema/schema_view.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "tests/unit/api/random_documents.hh"
#include "tests/unit/api/rule_sites.hh"
#include "tests/unit/api/transition_cases.hh"

namespace trainer {
namespace {

using kube::Json;

class Cases {
 public:
  explicit Cases(unsigned seed) : random_(seed), documents_(seed), transitions_(seed) {}

  void print(const test::RuledKind& kind, int count) {
    const wire::Schema& schema = *kind.schema;
    const auto has_predicate = [&](std::string_view cel) {
      return schema.predicates.rules.contains(cel);
    };
    for (const test::RuleSite& site : test::find_rule_sites(kind, has_predicate))
      for (int i = 0; i < count; ++i) {
        Json object = kind.base;
        change(test::reach(object, schema.document, site.path), site);
        Json stored = object;
        apply_schema_defaults(stored, schema);
        const kube::FieldErrors errors = check_schema(stored, schema);
        const bool is_status = !site.path.empty() && site.path[0] == "status";
        std::cout << kube::print_json(Json::object({{"object", object},
                                                    {"rule", site.cel()},
                                                    {"message", site.rule->get_string("message")},
                                                    {"subresource", is_status ? "status" : ""},
                                                    {"refusal", kube::to_string(errors)}}))
                  << "\n";
      }
    for (const Json& updates : transitions_.make(kind, count))
      std::cout << kube::print_json(updates) << "\n";
  }

 private:
  void change(Json& value, const test::RuleSite& site) {
    const std::string cel(site.cel());
    const std::string_view type = SchemaView(*site.schema).type();
    if (!site.path.empty() && up_to(9) == 0)
      value = up_to(1) == 0 ? Json() : documents_.anything();
    else if (type == "string")
      value = text();
    else if (type == "integer")
      value = pick({std::int64_t{-2147483648}, -1, 0, 1, 2, 1.5, 2.0, 0.0});
    else if (SchemaView(*site.schema).is_set("x-kubernetes-int-or-string"))
      value = pick({"auto", "gpu", "cpu", "Auto", "", "4", -1, 0, 1, 8, std::int64_t{2147483648}});
    else if (type == "array")
      for (int i = up_to(2); i >= 0; --i) value.push_back(pick({"node", "nodes", "", "Node", "b"}));
    else if (cel.find("self.metadata.name") != std::string::npos)
      value["metadata"].set("name", name());
    else
      change_members(value, *site.schema, cel);
  }

  // The members that the rule names.
  void change_members(Json& value, const Json& schema, const std::string& cel) {
    static const std::regex kMember("self\\.([A-Za-z]+)");
    for (std::sregex_iterator at(cel.begin(), cel.end(), kMember), end; at != end; ++at) {
      const std::string member = (*at)[1];
      const Json* below = SchemaView(schema).member(member);
      switch (below == nullptr ? 0 : up_to(5)) {
        case 0:
          value.erase(member);
          break;
        case 1:
          value.set(member, nullptr);
          break;
        case 2:
          value.set(member, test::least_value(*below));
          break;
        default:
          value.set(member, documents_.value(*below, member));
      }
    }
  }

  Json name() {
    return pick({"a", "job-1", "9lives", "-a", "a-", "a.b", "A", "a_b", "ab\xc3\xa9", "a--b",
                 std::string(63, 'a'), std::string(64, 'a'), std::string(63, 'a') + "-", "z9"});
  }

  Json text() {
    if (up_to(2) == 0)
      return pick({"", "trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue",
                   "kueue.x-k8s.io/multikueue ", "Kueue.x-k8s.io/multikueue", "s3://", "://x",
                   "hf://a/b", "\xc3\xa9://x", "s3://\xc3\xa9", "s3://x\n"});
    static constexpr std::string_view kCharacters = "aZ9+.-:/ \n";
    std::string out;
    for (int i = up_to(4); i > 0; --i) out += kCharacters[static_cast<std::size_t>(up_to(9))];
    if (up_to(2) > 0) out = std::string(up_to(1) == 0 ? "s" : "") + out + "://";
    for (int i = up_to(3); i > 0; --i) out += kCharacters[static_cast<std::size_t>(up_to(9))];
    return out;
  }

  Json pick(const std::vector<Json>& values) {
    return values[static_cast<std::size_t>(up_to(static_cast<int>(values.size()) - 1))];
  }
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  std::mt19937 random_;
  test::RandomDocuments documents_;
  test::TransitionCases transitions_;
};

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rule_cases SEED COUNT\n";
    return 2;
  }
  trainer::Cases cases(static_cast<unsigned>(std::atoi(argv[1])));
  for (const trainer::test::RuledKind& kind : trainer::test::ruled_kinds())
    cases.print(kind, std::atoi(argv[2]));
}
