#include "tests/unit/fate/fields.hh"

#include <algorithm>
#include <array>
#include <limits>

#include "api/schema/schema_view.hh"

namespace trainer::fate {
namespace {

using kube::Json;

// The schemas of a map's values and of objects whose members are not declared.
bool is_open(const SchemaView& view) {
  return view.type() == "object" && view.is_set("x-kubernetes-preserve-unknown-fields");
}

void find_fields(const Json& schema, std::vector<std::string>& steps, std::vector<Field>& found) {
  const SchemaView view(schema);
  const auto descend = [&](std::string_view step, const Json& below) {
    steps.emplace_back(step);
    find_fields(below, steps, found);
    steps.pop_back();
  };
  if (const Json* properties = view.find("properties")) {
    for (const auto& [name, below] : properties->as_object()) descend(name, below);
  } else if (const Json* items = view.find("items")) {
    descend(kItem, *items);
  } else if (const Json* values = view.find("additionalProperties");
             values && values->is_object()) {
    descend(kEntry, *values);
  } else if (view.type() != "object" || is_open(view)) {
    found.push_back({steps, &schema});
  }
}

// The quoted words of a rule such as `self in ['a', 'b']`.
std::vector<std::string> words_of_rules(const SchemaView& view) {
  std::vector<std::string> words;
  for (const Json& rule : view.list("x-kubernetes-validations")) {
    std::string_view cel = rule.get_string("rule");
    if (!cel.starts_with("self in [")) continue;
    cel = cel.substr(0, cel.find(']'));
    for (std::size_t at = cel.find('\''); at != cel.npos; at = cel.find('\'')) {
      cel.remove_prefix(at + 1);
      const std::size_t end = cel.find('\'');
      words.emplace_back(cel.substr(0, end));
      cel.remove_prefix(end + 1);
    }
  }
  return words;
}

std::vector<Json> allowed_by(const SchemaView& view) {
  std::vector<Json> allowed(view.list("enum").begin(), view.list("enum").end());
  if (allowed.empty())
    for (std::string& word : words_of_rules(view)) allowed.emplace_back(std::move(word));
  return allowed;
}

// A document has the items of these lists and maps already: a new one would belong to nothing.
bool is_frame(std::string_view name, const Json& present) {
  static constexpr std::array<std::string_view, 4> kLists = {"replicatedJobs", "containers",
                                                             "initContainers", "runtimePatches"};
  const bool is_role = present.is_object() && name.ends_with("ReplicaSpecs");
  return !present.empty() && (is_role || std::ranges::find(kLists, name) != kLists.end());
}

}  // namespace

std::string Field::path() const {
  std::string text;
  for (const std::string& step : steps) {
    if (step == kItem || step == kEntry)
      text += "[]";
    else
      text += (text.empty() ? "" : ".") + step;
  }
  return text;
}

std::vector<Field> fields_of(const Json& schema) {
  std::vector<Field> found;
  std::vector<std::string> steps{"spec"};
  find_fields(schema.get("properties").get("spec"), steps, found);
  return found;
}

std::string Values::text() {
  std::string text = "q";
  for (int i = 0; i < 11; ++i) text += static_cast<char>('a' + number(0, 25));
  return text;
}

std::int64_t Values::number(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
}

Pair Values::pair_of_texts(std::string_view prefix) {
  const std::string marker = text();
  return {std::string(prefix) + marker, std::string(prefix) + text(), marker};
}

// The numbers are small: many of them count what is created.
void Values::add_numbers(const Json& schema, std::vector<Pair>& pairs) {
  const SchemaView view(schema);
  const Json* least = view.find("minimum");
  const Json* most = view.find("maximum");
  const std::int64_t from = std::max<std::int64_t>(least ? least->as_int() : 2, 2);
  const std::int64_t to = most ? std::min<std::int64_t>(most->as_int(), 60) : 60;
  const std::int64_t one = number(from, to - 1);
  pairs.push_back({one, number(one + 1, to), {}});
  if (!least || least->as_int() < 2) pairs.push_back({1, to, {}});
  if (!least || least->as_int() < 1) pairs.push_back({0, 1, {}});
}

std::vector<Pair> Values::pairs_for(const Json& schema) {
  const SchemaView view(schema);
  std::vector<Pair> pairs;
  if (std::vector<Json> allowed = allowed_by(view); !allowed.empty()) {
    std::ranges::shuffle(allowed, random_);
    for (std::size_t i = 0; i < allowed.size(); ++i)
      pairs.push_back({allowed[i], i == 0 ? Json() : allowed[i - 1], {}});
    std::ranges::rotate(pairs, pairs.begin() + 1);  // the pair of a value and none comes last
    if (!view.is_set("x-kubernetes-int-or-string")) return pairs;
  }
  if (is_open(view)) {
    const std::string marker = text();
    pairs.push_back({Json::object({{text(), marker}}), Json::object({{text(), text()}}), marker});
  } else if (view.type() == "boolean") {
    pairs = {{true, false, {}}, {true, Json(), {}}, {false, Json(), {}}};
  } else if (view.type() == "integer" || view.type() == "number") {
    add_numbers(schema, pairs);
  } else if (view.is_set("x-kubernetes-int-or-string") && view.text("pattern").empty()) {
    pairs.push_back(pair_of_texts(""));
    add_numbers(schema, pairs);
  } else if (view.is_set("x-kubernetes-int-or-string")) {
    // A quantity in the form in which Kubernetes prints it.
    const auto amount = [this] { return std::to_string(number(10'000, 99'999) * 10 + 1); };
    std::string marker = amount();
    pairs.push_back({marker, amount(), marker});
  } else if (view.text("format") == "date-time") {
    const auto time = [this] {
      return "2026-0" + std::to_string(number(1, 9)) + "-1" + std::to_string(number(0, 9)) +
             "T10:00:0" + std::to_string(number(0, 9)) + "Z";
    };
    pairs.push_back({time(), time(), {}});
  } else {
    for (const char* prefix : {"", "https://", "example.com/"})
      pairs.push_back(pair_of_texts(prefix));
  }
  return pairs;
}

Json Values::least(const Json& schema) {
  const SchemaView view(schema);
  if (view.type() == "array") {
    Json list = Json::array();
    if (view.find("minItems") != nullptr) list.push_back(least(*view.find("items")));
    return list;
  }
  if (view.type() != "object" || is_open(view)) return pairs_for(schema).front().one;
  Json object = Json::object();
  for (const Json& name : view.list("required"))
    object.set(name.as_string(), least(*view.member(name.as_string())));
  return object;
}

Json& place(Json& document, const Json& schema, const Field& field, Values& values) {
  Json* at = &document;
  const Json* below = &schema;
  std::string_view name;  // the name of the last member
  for (const std::string& step : field.steps) {
    const SchemaView view(*below);
    const bool is_present = is_frame(name, *at);
    const auto pick = [&] { return values.number(0, static_cast<std::int64_t>(at->size()) - 1); };
    if (step == kItem) {
      below = view.find("items");
      if (!is_present) at->push_back(values.least(*below));
      auto& items = at->as_array();
      at = &items[is_present ? static_cast<std::size_t>(pick()) : items.size() - 1];
    } else if (step == kEntry) {
      below = view.find("additionalProperties");
      if (is_present) {
        at = &(at->as_object().begin() + pick())->second;
      } else {
        at = &(*at)["example.com/" + values.text()];
        *at = values.least(*below);
      }
    } else {
      below = view.member(step);
      name = step;
      Json& member = (*at)[step];
      if (member.is_null()) member = values.least(*below);
      at = &member;
    }
  }
  return *at;
}

}  // namespace trainer::fate
