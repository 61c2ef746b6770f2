#include "tests/unit/api/transition_cases.hh"

#include <algorithm>
#include <regex>
#include <set>
#include <stdexcept>

#include "api/describe/elastic_rules.hh"
#include "api/schema/schema_view.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/time.hh"

namespace trainer::test {
namespace {

using kube::Json;

void prune(Json& value, const Json& schema) {
  const SchemaView view(schema);
  if (value.is_array() && view.find("items") != nullptr)
    for (Json& item : value.as_array()) prune(item, *view.find("items"));
  if (!value.is_object()) return;
  const bool is_open = view.is_set("x-kubernetes-preserve-unknown-fields");
  value.as_object().keep_if([&](Json::Object::Member& member) {
    const Json* below = view.member(member.first);
    if (below != nullptr) prune(member.second, *below);
    return below != nullptr || is_open;
  });
}

// Returns the object in the form before the API server's checks.
Json admitted(Json object, const RuledKind& kind) {
  for (const char* part : {"spec", "status"})
    if (Json* found = object.find(part))
      prune(*found, *SchemaView(kind.schema->document).member(part));
  apply_schema_defaults(object, *kind.schema);
  return object;
}

void collect(Json& value, std::vector<Json*>& found) {
  found.push_back(&value);
  if (value.is_array())
    for (Json& item : value.as_array()) collect(item, found);
  if (value.is_object())
    for (auto& [name, member] : value.as_object()) collect(member, found);
}

// "spec.runtimePatches[].manager"
std::string printed(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& name : path)
    text += name.empty() ? "[]" : (text.empty() ? "" : ".") + name;
  return text;
}

const Json& schema_at(const Json& root, const std::vector<std::string>& path) {
  const Json* at = &root;
  for (const std::string& name : path)
    at = name.empty() ? SchemaView(*at).find("items") : SchemaView(*at).member(name);
  return *at;
}

}  // namespace

TransitionCases::Subject TransitionCases::subject_of(const RuledKind& kind, const RuleSite& site) {
  static const std::regex kOfMember(
      R"(has\(self\.(\w+)\) == has\(oldSelf\.\1\)|!has\(self\.(\w+)\) \|\| oldSelf\.\?\2\.hasValue\(\))");
  constexpr std::string_view kTrainer = ".spec.trainer";
  const std::string_view field = site.rule->get_string("fieldPath");
  Subject subject{site, printed(site.path) + std::string(field), site.path};
  const std::string cel(site.cel());
  std::vector<std::string> value = site.path;
  std::smatch match;
  if (std::regex_match(cel, match, kOfMember)) {
    subject.is_removed = match[2].matched;
    subject.member = match[subject.is_removed ? 2 : 1];
  } else if (cel == "self == oldSelf" && !site.path.empty() && !site.path.back().empty()) {
    subject.member = site.path.back();
    subject.parent.pop_back();
  } else if (site.path.empty() && field == kTrainer) {
    // These rules of the whole object read its status, which a stored object here has not.
    subject.place = kTrainer.substr(1);
    subject.parent = {"spec"};
    subject.member = "trainer";
    subject.is_by_status = cel != wire::trainer_stays().cel;
    value = {"spec", "trainer"};
  } else {
    throw std::invalid_argument("no updates are known for the rule " + cel + " of " +
                                printed(site.path));
  }
  subject.parent_schema = &schema_at(kind.schema->document, subject.parent);
  if (!subject.parent.empty() && subject.parent.back().empty()) {
    std::vector<std::string> list = subject.parent;
    list.pop_back();
    const SchemaView view(schema_at(kind.schema->document, list));
    const Json::Array& keys = view.list("x-kubernetes-list-map-keys");
    subject.is_key = std::find(keys.begin(), keys.end(), Json(subject.member)) != keys.end();
  }
  const auto is_unchecked = [&kind](std::string_view rule) {
    return rule.find("oldSelf") == rule.npos && !kind.schema->predicates.rules.contains(rule);
  };
  for (const RuleSite& other : find_rule_sites(kind, is_unchecked))
    if ((cel == "self == oldSelf" || field == kTrainer) && other.path.size() >= value.size() &&
        std::equal(value.begin(), value.end(), other.path.begin()))
      subject.is_checked = false;
  return subject;
}

std::vector<Json> TransitionCases::make(const RuledKind& kind, int count) {
  const auto compares = [](std::string_view cel) {
    return cel.find("oldSelf") != std::string_view::npos;
  };
  std::vector<Json> cases;
  for (const RuleSite& site : find_rule_sites(kind, compares)) {
    const Subject subject = subject_of(kind, site);
    const int objects = std::max(2, count / 10);
    for (int i = 0; i < objects; ++i) {
      const bool has_member = i % 4 != 1;
      const Json stored = stored_object(kind, subject, has_member);
      const bool can_refuse =
          subject.is_removed ? !has_member : has_member && !subject.is_key && !subject.is_by_status;
      // The first update changes nothing, the second is refused by the rule, and the third is any
      // other.
      Json updates = Json::array();
      updates.push_back(answered(stored, stored, kind, subject));
      for (int k = 1; k < count / objects; ++k) {
        Json update = answered(update_of(stored, kind, subject), stored, kind, subject);
        for (int more = 0;
             k == 1 && can_refuse && more < 1000 && !is_refused_at(update, subject.place); ++more)
          update = answered(update_of(stored, kind, subject), stored, kind, subject);
        updates.push_back(std::move(update));
      }
      cases.push_back(Json::object({{"stored", stored},
                                    {"is_older", subject.is_removed && has_member},
                                    {"updates", updates},
                                    {"rule", site.cel()},
                                    {"place", subject.place},
                                    {"message", site.rule->get_string("message")},
                                    {"can_refuse", !subject.is_key && !subject.is_by_status}}));
    }
  }
  return cases;
}

// This is an update with the results of the two checks and, if only the rules refuse it, the fields
// that they name for this rule's message. If the schema refuses something else, the API server may
// not reach the rules.
Json TransitionCases::answered(const Json& update, const Json& stored, const RuledKind& kind,
                               const Subject& subject) {
  const std::string_view message = subject.site.rule->get_string("message");
  const Json object = admitted(update, kind);
  const Json before = admitted(stored, kind);
  kube::FieldErrors errors = check_schema(object, *kind.schema, &before);
  const bool is_by_rules = std::ranges::all_of(
      errors, [message](const kube::FieldError& error) { return error.detail == message; });
  if (errors.empty()) errors = check_transitions(object, before, *kind.schema);
  Json said = Json::object({{"object", update}, {"refusal", kube::to_string(errors)}});
  if (!is_by_rules) return said;
  std::set<std::string> fields;
  for (const kube::FieldError& error : errors)
    if (error.detail == message) fields.insert(error.path);
  return said.set("fields", Json::Array(fields.begin(), fields.end()));
}

bool TransitionCases::is_refused_at(const Json& update, const std::string& place) {
  static const std::regex kIndex("\\[[0-9]+\\]");
  return std::ranges::any_of(update.get_array("fields"), [&place](const Json& field) {
    return std::regex_replace(field.as_string(), kIndex, "[]") == place;
  });
}

Json TransitionCases::stored_object(const RuledKind& kind, const Subject& subject,
                                    bool has_member) {
  const Json& member_schema = *SchemaView(*subject.parent_schema).member(subject.member);
  for (int attempt = 0; attempt < 30; ++attempt) {  // the last ones with the least that is needed
    Json object = kind.base;
    Json& parent = reach(object, kind.schema->document, subject.parent);
    const bool is_last = attempt >= 25 || !subject.is_checked;
    if (has_member && !is_last) parent.set(subject.member, value_of(member_schema, subject.member));
    if (has_member && parent.find(subject.member) == nullptr)
      parent.set(subject.member, least_value(member_schema));
    if (!has_member && !is_last) parent.erase(subject.member);
    const Json stored = admitted(object, kind);
    if (check_schema(stored, *kind.schema, &stored).empty()) return object;
  }
  throw std::logic_error("no object is valid with " + subject.member + " of " +
                         printed(subject.parent));
}

Json TransitionCases::update_of(const Json& stored, const RuledKind& kind, const Subject& subject) {
  Json object = stored;
  Json& parent = reach(object, kind.schema->document, subject.parent);
  if (up_to(4) > 0) change_member(parent, subject);
  // This changes something beside it, rightly or wrongly.
  const Json* properties = SchemaView(*subject.parent_schema).find("properties");
  if (up_to(3) == 0 && !subject.parent.empty() && properties != nullptr) {
    std::vector<Json::Object::Member> others(properties->as_object().begin(),
                                             properties->as_object().end());
    const auto& [name, schema] = any_of(others);
    if (name != subject.member)
      parent.set(name, up_to(1) == 0 ? documents_.anything() : value_of(schema, name));
  }
  // Another item is put in front of the one that it is in.
  const auto list = std::find(subject.parent.rbegin(), subject.parent.rend(), "");
  if (list != subject.parent.rend() && up_to(2) == 0) {
    const std::vector<std::string> path(subject.parent.begin(), list.base() - 1);
    const Json& schema = schema_at(kind.schema->document, path);
    Json::Array& items = reach(object, kind.schema->document, path).as_array();
    items.insert(items.begin(), value_of(*SchemaView(schema).find("items"), ""));
  }
  return object;
}

void TransitionCases::change_member(Json& parent, const Subject& subject) {
  const Json& schema = *SchemaView(*subject.parent_schema).member(subject.member);
  Json* value = parent.find(subject.member);
  switch (value == nullptr ? up_to(2) : up_to(9)) {
    case 0:
      parent.set(subject.member, value_of(schema, subject.member));
      break;
    case 1:
      parent.set(subject.member, nullptr);
      break;
    case 2:
      parent.set(subject.member, least_value(schema));
      break;
    case 3:
    case 4:
      parent.erase(subject.member);
      break;
    default:
      change_part(*value);
  }
}

// This is another scalar, another order, one part less or more, or the same time in other words.
void TransitionCases::change_part(Json& value) {
  std::vector<Json*> parts;
  collect(value, parts);
  std::vector<Json*> lists;
  std::vector<Json*> times;
  for (Json* part : parts) {
    if (part->is_array() && part->size() > 1) lists.push_back(part);
    if (part->is_string() && kube::Time::parse(part->as_string())) times.push_back(part);
  }
  if (!times.empty() && up_to(2) == 0) {
    std::string& time = any_of(times)->as_string();
    time.replace(time.size() - 1, 1, up_to(1) == 0 ? "+00:00" : ".000Z");
    return;
  }
  if (!lists.empty() && up_to(1) == 0) {
    std::ranges::reverse(any_of(lists)->as_array());
    return;
  }
  Json& part = *any_of(parts);
  if (part.is_string())
    part = part.as_string() + "a";
  else if (part.is_int())
    part = part.as_int() + 1;
  else if (part.is_bool())
    part = !part.as_bool();
  else if (part.is_array() && !part.empty())
    part.as_array().erase(part.as_array().begin() + up_to(static_cast<int>(part.size()) - 1));
  else if (part.is_object() && !part.empty())
    part.erase(
        std::string((part.as_object().begin() + up_to(static_cast<int>(part.size()) - 1))->first));
  else
    part = documents_.anything();
}

Json TransitionCases::value_of(const Json& schema, const std::string& name) {
  if (name == "managedBy")
    return up_to(1) == 0 ? "kueue.x-k8s.io/multikueue" : "trainer.kubeflow.org/trainjob-controller";
  return documents_.value(schema, name);
}

}  // namespace trainer::test
