#include "local/tests/store_requests.hh"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/server/api.hh"
#include "kube/server/collector.hh"
#include "kube/server/refusals.hh"
#include "kube/server/tables.hh"
#include "kube/server/target.hh"
#include "local/kinds/kinds.hh"
#include "local/tests/hostile_bodies.hh"

namespace trainer::test {

namespace {

using kube::Json;
using kube::server::Change;
using kube::server::ObjectStore;
using kube::server::Outcome;
using kube::server::Request;
using kube::server::Response;
using kube::server::ServedKind;

constexpr std::string_view kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
// The limits are for a list of many objects; the depth is that of any client.
constexpr kube::JsonLimits kListLimits{.max_bytes = 1U << 30};

// A kind of another project without a schema: it takes anything.
Json definition_of_things() {
  return *kube::parse_json(
      R"({"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
          "versions":[{"name":"v1","served":true,"storage":true,
            "subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas",
              "statusReplicasPath":".status.replicas"}},
            "schema":{"openAPIV3Schema":{"type":"object",
              "x-kubernetes-preserve-unknown-fields":true}}}]}})");
}

const kube::server::ServedKinds& kinds() {
  static const auto kKinds = [] {
    auto all = local::all_kinds();
    for (ServedKind& kind : local::kinds_of_crd(definition_of_things()))
      all.push_back(std::move(kind));
    return all;
  }();
  return kKinds;
}

// Returns the path of an object, or of a collection if the key has no name, or of all namespaces.
std::string path_of(const kube::Resource& resource, const kube::ObjectKey& key) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (!key.ns.empty()) path += "/namespaces/" + key.ns;
  path += "/" + resource.plural;
  return key.name.empty() ? path : path + "/" + key.name;
}

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void hold(bool law, std::string_view name, std::string_view detail) {
  if (!law) throw Broken(fmt::format("{}: {}", name, detail.substr(0, 2'000)));
}

// This is a server, and the changes that its journal has got.
class World {
 public:
  World()
      : api_(kinds(), store_, environment()), collector_(kinds(), store_, [] { return now(); }) {
    store_.set_journal([this](const Change& change) { keep(change); });
    store_.subscribe([this](const Change& change) { show(change); });
    for (const char* name : {"n", "m"}) {
      Json metadata = Json::object({{"name", name}, {"uid", fmt::format("of-{}", name)}});
      Json ns = Json::object({{"apiVersion", "v1"}, {"kind", "Namespace"}});
      hold(store_.put(kube::kNamespaces, ns.set("metadata", std::move(metadata))).has_value(),
           "a namespace is stored", name);
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void send(Request request) {
    const std::string title = fmt::format("{} {}", request.method, request.target);
    Outcome outcome = api_.handle(std::move(request));
    if (const auto* response = std::get_if<Response>(&outcome)) {
      const bool is_json = response->content_type == "application/json";
      const auto body = kube::parse_json(is_json ? response->body : "{}", kListLimits);
      hold(body.has_value(), "an answer is JSON: " + title, response->body);
    }
  }
  void collect() {
    for (int steps = 0; collector_.has_work() && steps < 20; ++steps) collector_.step();
  }
  // All kinds that have objects: as a list, as a Table, by the first lines of a watch, and each.
  void check_all() {
    for (const ServedKind& kind : kinds()) {
      if (store_.all(kind.resource).empty()) continue;
      const std::string path = path_of(kind.resource, {"", ""});
      read(path, "application/json", kListLimits);
      read(path, kTable, kListLimits);
      read(path + "?watch=true", "application/json", kListLimits);
      for (const auto& [key, held] : store_.all(kind.resource))
        read(path_of(kind.resource, key), "application/json", kube::kObjectLimits);
    }
  }
  // Another store gets the changes of the journal, and must have the same objects.
  void check_restore() const {
    ObjectStore other(1, 10, ObjectStore::Form::kTexts);
    for (const ServedKind& kind : kinds()) other.add_collection(kind.resource);
    for (const auto& [place, text] : journal_) {
      const auto restored = other.restore(place.first, place.second, text);
      hold(restored.has_value(), "what was stored is restored", text);
    }
    std::size_t count = 0;
    for (const ServedKind& kind : kinds()) {
      if (kube::server::find_stored_kind(kinds(), kind.resource) != &kind) continue;
      for (const auto& [key, held] : store_.all(kind.resource)) {
        const auto same = other.find(kind.resource, key);
        hold(same && *same == *held.get(), "a restart keeps what was stored", key.to_string());
        ++count;
      }
    }
    hold(count == journal_.size(), "a restart brings nothing back", std::to_string(count));
  }
  // A row that a disk has damaged is refused, or it is an object like others.
  void check_damage(Choices choices) const {
    World other;
    for (const auto& [place, text] : journal_) {
      Json object = *kube::parse_json(text);
      for (int times = choices.one_in(2) ? 1 : 2; times > 0; --times) damage(choices, object);
      static_cast<void>(other.store_.restore(place.first, place.second, kube::print_json(object)));
    }
    other.check_all();
    other.collect();
  }

 private:
  static void damage(Choices& choices, Json& object) {
    static const std::vector<std::string> kMembers{
        "kind",        "apiVersion", "metadata",        "spec",         "status",
        "data",        "name",       "namespace",       "uid",          "resourceVersion",
        "labels",      "finalizers", "managedFields",   "generation",   "creationTimestamp",
        "annotations", "selfLink",   "ownerReferences", "generateName", "deletionTimestamp"};
    static const std::vector<std::string> kValues{
        "null", "\"x\"", "7", "[]", "{}", "[7]", "true", "{\"a\":7}", "[{\"a\":[7]}]", "-1"};
    const std::size_t at = choices.pick(kMembers.size());
    Json& metadata = object["metadata"];
    Json& owner = at >= 6 && metadata.is_object() ? metadata : object;
    if (!owner.is_object()) return;
    if (choices.one_in(4)) {
      owner.erase(kMembers[at]);
    } else {
      owner.set(kMembers[at], *kube::parse_json(choices.of(kValues)));
    }
  }
  static kube::Time now() { return kube::Time::from_seconds(1'800'000'000); }
  kube::server::Api::Environment environment() {
    kube::server::Api::Environment made;
    made.now = [] { return now(); };
    made.new_uid = [this] { return fmt::format("uid-{}", ++made_); };
    made.new_name_suffix = [this] { return fmt::format("{:05}", ++made_); };
    return made;
  }
  void keep(const Change& change) {
    const auto place = std::pair(*change.resource, change.key);
    if (!change.after) {
      journal_.erase(place);
      return;
    }
    hold(change.text != nullptr && change.text->size() <= kube::JsonLimits().max_bytes,
         "the journal gets a text", change.key.to_string());
    journal_[place] = *change.text;
  }
  // The kinds that a definition makes answer for any object.
  static void use_kinds(const Json& definition) {
    for (const ServedKind& kind : local::kinds_of_crd(definition)) {
      for (const char* spec : {R"("a")", R"({"a":{"b":[1]}})", "[]", "1"}) {
        Json object = Json::object({{"metadata", Json::object({{"name", "a"}})}});
        object.set("spec", *kube::parse_json(spec));
        kind.set_defaults(object);
        static_cast<void>(kind.check(object, nullptr));
        static_cast<void>(kind.check(object, &object));
        static_cast<void>(kind.unknown_fields(object));
        static_cast<void>(kube::server::table_of(kind, object, "", now()));
      }
    }
  }
  // Shows the change like a watch with a bound.
  void show(const Change& change) {
    if (change.after && change.resource->kind == "CustomResourceDefinition")
      use_kinds(*change.after);
    for (const ServedKind& kind : kinds()) {
      if (!kind.resource.has_same_objects(*change.resource)) continue;
      Outcome outcome =
          api_.begin(get(path_of(kind.resource, {"", ""}) +
                             "?watch=true&resourceVersion=" + std::to_string(change.version),
                         "application/json"));
      const auto* watch = std::get_if<kube::server::Watch>(&outcome);
      hold(watch != nullptr, "a watch begins", kind.resource.kind);
      const std::string line = watch->line(change);
      hold(kube::parse_json(line, kube::kObjectLimits).has_value(), "a line of a watch is JSON",
           line);
    }
  }
  static Request get(std::string target, std::string_view accept) {
    Request request;
    request.target = std::move(target);
    request.accept = accept;
    return request;
  }
  void read(const std::string& target, std::string_view accept, const kube::JsonLimits& limits) {
    Outcome outcome = api_.begin(get(target, accept));
    std::vector<std::string> texts;
    if (const auto* watch = std::get_if<kube::server::Watch>(&outcome)) {
      texts = watch->initial;
    } else {
      const auto& response = std::get<Response>(outcome);
      hold(response.status == 200, "GET " + target, response.body);
      texts.push_back(response.body);
    }
    for (const std::string& text : texts) {
      const auto json = kube::parse_json(text, limits);
      hold(json.has_value(), "GET " + target, json ? "" : json.error().message);
    }
  }

  struct InOrder {
    using Place = std::pair<kube::Resource, kube::ObjectKey>;
    bool operator()(const Place& a, const Place& b) const {
      return std::tie(a.first.group, a.first.plural, a.second) <
             std::tie(b.first.group, b.first.plural, b.second);
    }
  };
  int made_ = 0;
  ObjectStore store_{1, 10, ObjectStore::Form::kTexts};
  kube::server::Api api_;
  kube::server::Collector collector_;
  std::map<InOrder::Place, std::string, InOrder> journal_;
};

std::string query(Choices& choices) {
  static const std::vector<std::string> kQueries{"",
                                                 "",
                                                 "",
                                                 "",
                                                 "fieldManager=m",
                                                 "fieldManager=%ff",
                                                 "dryRun=All",
                                                 "fieldManager=m&force=true",
                                                 "fieldValidation=Strict&fieldManager=n",
                                                 "propagationPolicy=Foreground",
                                                 "propagationPolicy=Orphan",
                                                 "gracePeriodSeconds=0",
                                                 "fieldManager=%0a",
                                                 "labelSelector=l%3Dv",
                                                 "fieldValidation=%ff",
                                                 "limit=1"};
  return "?" + choices.of(kQueries);
}

Request next_request(Choices& choices) {
  static const std::vector<std::string> kMethods{"POST",  "POST",  "PUT",    "PATCH",
                                                 "PATCH", "PATCH", "DELETE", "GET"};
  static const std::vector<std::string> kSubresources{"", "", "", "", "", "/status", "/scale"};
  // Thing, which accepts anything, is chosen more often than others.
  const std::size_t at = choices.pick(kinds().size() + 12);
  const ServedKind& kind = at < kinds().size() ? kinds()[at] : kinds().back();
  const std::string ns = !kind.resource.namespaced ? "" : choices.one_in(8) ? "m" : "n";
  const std::string name = choices.one_in(3) ? "b" : "a";
  Request request;
  request.method = choices.of(kMethods);
  const bool has_name =
      request.method != "POST" && !(request.method == "DELETE" && choices.one_in(6));
  request.target = path_of(kind.resource, {ns, has_name ? name : ""});
  if (has_name) request.target += choices.of(kSubresources);
  request.target += query(choices);
  request.user_agent = choices.one_in(8) ? "\xff\n/1" : "fuzz/1";
  if (request.method == "GET" || (request.method == "DELETE" && choices.one_in(2))) return request;
  const std::string version = kind.resource.api_version();
  Body body = request.method == "PATCH"
                  ? hostile_patch(choices, version, kind.resource.kind, ns, name)
                  : hostile_object(choices, version, kind.resource.kind, ns, name);
  request.body = std::move(body.text);
  request.content_type = std::move(body.media_type);
  return request;
}

}  // namespace

std::string run_store_requests(std::string_view bytes) {
  Choices choices(bytes);
  std::string last;
  try {
    World world;
    while (!choices.is_over()) {
      Request request = next_request(choices);
      last = fmt::format("{} {} {} {}", request.method, request.target, request.content_type,
                         request.body.substr(0, 1'000));
      world.send(std::move(request));
      if (choices.one_in(4)) world.collect();
      world.check_all();
    }
    world.check_restore();
    last = "damage";
    world.check_damage(Choices(bytes));
  } catch (const std::exception& error) {
    return fmt::format("{} (after {})", error.what(), last);
  }
  return "";
}

}  // namespace trainer::test
