#include "kube/server/managed_fields.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"
#include "kube/server/field_schema.hh"
#include "kube/server/managers.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/refusals.hh"
#include "kube/server/typed.hh"

namespace kube::server {
namespace {

constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kBeforeApply = "before-first-apply";
constexpr std::string_view kKubectl = "kubectl";

struct Conflict {
  ManagerId manager;
  FieldPath path;
};

// No manager has these fields.
const FieldSet& never_managed() {
  static const FieldSet kSet = [] {
    FieldSet set;
    for (const auto* name : {"apiVersion", "kind", "metadata"})
      set.insert({fmt::format("f:{}", name)});
    for (const auto* name : {"name", "namespace", "creationTimestamp", "selfLink", "uid",
                             "generation", "managedFields", "resourceVersion"})
      set.insert({"f:metadata", fmt::format("f:{}", name)});
    return set;
  }();
  return kSet;
}

Json without_managed_fields(const Json& object) {
  Json copy = object;
  if (Json* metadata = copy.find("metadata"); metadata && metadata->is_object())
    metadata->erase("managedFields");
  return copy;
}

// This is one object, its schema and the entries of its managedFields during one write.
class Update {
 public:
  Update(const ServedKind& kind, const Writer& by)
      : kind_(kind),
        schema_(FieldSchema::of(kind)),
        by_(by),
        version_(kind.resource.api_version()) {
    if (by.subresource == "status") ignored_.insert({"f:spec"});
    if (by.subresource.empty() && kind.has_status) ignored_.insert({"f:status"});
  }

  ManagerId id(std::string_view operation, std::string_view manager) const {
    ManagerId id;
    id.manager = manager.empty() ? "unknown" : manager;
    id.operation = operation;
    if (operation == "Update") id.api_version = version_;
    id.subresource = by_.subresource;
    return id;
  }

  // Returns an object without any values. Kubernetes' own kinds always have a spec and a status.
  Json nothing() const {
    Json object = Json::object({{"apiVersion", version_}, {"kind", kind_.resource.kind}});
    if (is_custom(kind_.resource)) return object;
    for (const auto* name : {"metadata", "spec", "status"})
      if (schema_.has_field(name) && kind_.schema) object.set(name, Json::object());
    return object;
  }

  // The manager becomes the owner of the fields that `after` has changed, and no other manager
  // keeps them.
  void track(const Json& before, const Json& after, std::string_view manager,
             ManagedEntries& entries) const {
    const Comparison changes = compared(before, after);
    const FieldSet taken = changes.modified | changes.added;
    for (ManagedEntry& entry : entries.all()) entry.fields = entry.fields - taken - changes.removed;
    entries.erase_empty();
    const FieldSet own = taken - never_managed();
    if (!own.empty()) {
      ManagedEntry& entry = entries.at(id("Update", manager), version_);
      entry.fields = entry.fields | own;
      entry.time = by_.now.to_string();
    }
    entries.merge_oldest_updates();
  }

  // Merges `config` into `live`. The entries are those of the result, unless there are conflicts.
  Json apply(const Json& live, const Json& config, bool is_forced, ManagedEntries& entries,
             std::vector<Conflict>& conflicts) const {
    const ManagerId self = id("Apply", by_.manager);
    ManagedEntry& own = entries.at(self, version_);
    const FieldSet last = own.fields;
    own.fields = fields_of(config, schema_).without_trees(ignored_);
    own.api_version = version_;
    FieldSet dropped;
    Json merged = prune(merge_typed(live, config, schema_), last, entries, dropped);
    // Emptied fields are not removed: other managers of the list or map keep it.
    const Comparison changes = compared(live, merged);
    discard_emptied(merged, discarded_if_empty(dropped), schema_);
    const FieldSet taken = changes.modified | changes.added;
    for (ManagedEntry& entry : entries.all()) {
      if (entry.id == self) continue;
      (entry.fields & taken).for_each([&](const FieldPath& path) {
        conflicts.push_back({entry.id, path});
      });
    }
    if (!conflicts.empty() && !is_forced) return merged;
    for (ManagedEntry& entry : entries.all())
      if (entry.id != self) entry.fields = entry.fields - taken - changes.removed;
    ManagedEntry& applied = entries.at(self, version_);
    applied.fields = applied.fields - never_managed();
    if (merged != live) applied.time = by_.now.to_string();
    entries.erase_empty();
    return merged;
  }

  // Returns the fields of the annotation last-applied-configuration whose values in the object are
  // still the same.
  FieldSet last_applied_fields(const Json& live) const {
    const auto last = parse_json(live.get("metadata").get("annotations").get_string(kLastApplied));
    if (!last || !last->is_object() || last->get_string("apiVersion") != version_) return {};
    const Comparison changes = compare(*last, live, schema_);
    return fields_of(*last, schema_) - changes.modified - changes.added - changes.removed;
  }

  const FieldSchema& schema() const { return schema_; }

 private:
  Comparison compared(const Json& before, const Json& after) const {
    Comparison changes = compare(before, after, schema_);
    changes.added = changes.added.without_trees(ignored_);
    changes.removed = changes.removed.without_trees(ignored_);
    changes.modified = changes.modified.without_trees(ignored_);
    return changes;
  }

  // Removes the fields that this manager had applied before and does not apply now, unless another
  // one manages them. These are `dropped`.
  Json prune(const Json& merged, const FieldSet& last, const ManagedEntries& entries,
             FieldSet& dropped) const {
    if (last.empty()) return merged;
    const auto named = [this](const FieldSet& set) { return with_named_fields(set, schema_); };
    FieldSet managed;
    for (const ManagedEntry& entry : entries.all()) managed = managed | entry.fields;
    const FieldSet gone = named(last);
    const FieldSet all = named(fields_of(merged, schema_));
    Json pruned = without_fields(merged, gone, schema_);
    const FieldSet kept = named(fields_of(pruned, schema_)) | named(managed);
    pruned = without_fields(merged, all - kept, schema_);
    dropped = (all - named(fields_of(pruned, schema_))) & gone;
    return without_fields(merged, dropped, schema_);
  }

  // If an apply has emptied a list or map of a Go struct, the result is no null. In a custom
  // resource, only the metadata is a struct.
  FieldSet discarded_if_empty(const FieldSet& dropped) const {
    if (!is_custom(kind_.resource)) return dropped;
    FieldSet metadata;
    if (const FieldSet* below = dropped.below("f:metadata")) metadata.attach("f:metadata", *below);
    return metadata;
  }

  const ServedKind& kind_;
  FieldSchema schema_;
  const Writer& by_;
  std::string version_;
  FieldSet ignored_;  // fields that this kind of write cannot change
};

// Entries in the request count, unless they cannot be read.
ManagedEntries entries_of(const Json* before, const Json& object, const Writer& by) {
  ManagedEntries stored;
  if (before != nullptr)
    stored = ManagedEntries::read(before->get("metadata").get("managedFields"))
                 .value_or(ManagedEntries());
  const Json* sent = object.get("metadata").find("managedFields");
  if (!by.subresource.empty() || sent == nullptr) return stored;
  const bool is_reset =
      sent->empty() || (sent->size() == 1 && sent->is_array() && sent->as_array().front().empty());
  if (is_reset) return {};
  auto entries = ManagedEntries::read(*sent);
  return entries && !entries->empty() ? std::move(*entries) : stored;
}

void write_entries(Json& object, const ManagedEntries& entries) {
  Json list = entries.to_json();
  Json& metadata = object["metadata"];
  if (list.is_null()) {
    metadata.erase("managedFields");
  } else {
    metadata.set("managedFields", std::move(list));
  }
}

Response refuse(std::vector<Conflict> conflicts) {
  std::stable_sort(conflicts.begin(), conflicts.end(),
                   [](const Conflict& a, const Conflict& b) { return a.manager < b.manager; });
  Json causes = Json::array();
  std::string lines;
  const ManagerId* last = nullptr;
  for (const Conflict& conflict : conflicts) {
    const std::string with = conflict.manager.print();
    Json cause = Json::object({{"reason", "FieldManagerConflict"}});
    cause.set("message", fmt::format("conflict with {}", with));
    causes.push_back(std::move(cause.set("field", print_path(conflict.path))));
    if (last == nullptr || *last != conflict.manager)
      lines += fmt::format("{}conflicts with {}:", lines.empty() ? "" : "\n", with);
    lines += fmt::format("\n- {}", print_path(conflict.path));
    last = &conflict.manager;
  }
  const std::string message =
      conflicts.size() == 1
          ? fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                        conflicts.front().manager.print(), print_path(conflicts.front().path))
          : fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), lines);
  return failure(409, "Conflict", message, Json::object({{"causes", std::move(causes)}}));
}

// Returns "failed to create typed patch object (NAMESPACE/NAME; GROUP/VERSION, Kind=KIND): ...".
Response untyped(const ServedKind& kind, const Json& config,
                 const std::vector<std::string>& errors) {
  const Json& metadata = config.get("metadata");
  std::string text = errors.size() == 1 ? errors.front() : "errors:";
  if (errors.size() > 1)
    for (const std::string& error : errors) text += "\n  " + error;
  return server_error(fmt::format("failed to create typed patch object ({}/{}; {}, Kind={}): {}",
                                  metadata.get_string("namespace"), metadata.get_string("name"),
                                  kind.resource.api_version(), kind.resource.kind, text));
}

// Finds nulls of a custom resource that has just been applied. The API server removes those that a
// client sends when it decodes an object, but an apply is merged after that, so its nulls are
// checked.
void find_nulls(const Json& value, const FieldSchema& schema, const std::string& path,
                FieldErrors& errors) {
  if (value.is_null() && !schema.type().empty()) {
    errors.push_back({FieldError::Type::kTypeInvalid, path, "null",
                      fmt::format("must be of type {}: \"null\"", schema.type())});
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.as_object())
      if (!member.is_null() || schema.default_of(name).is_null())
        find_nulls(member, schema.member(name), join_field(path, name), errors);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      find_nulls(value.as_array()[i], schema.items(), join_index(path, i), errors);
  }
}

std::optional<Response> refuse_nulls(const ServedKind& kind, Json applied) {
  if (!is_custom(kind.resource)) return std::nullopt;
  const std::string name(applied.get("metadata").get_string("name"));
  applied.erase("metadata");  // it is a struct of Go
  FieldErrors errors;
  find_nulls(applied, FieldSchema::of(kind), "", errors);
  if (errors.empty()) return std::nullopt;
  return invalid_object(kind.resource.kind, kind.resource.group, name, errors);
}

// kubectl may take fields that it manages by its annotation: those are no conflicts.
void forgive(const Update& update, const Json& live, std::vector<Conflict>& conflicts) {
  const FieldSet allowed = update.last_applied_fields(live);
  std::erase_if(conflicts,
                [&allowed](const Conflict& conflict) { return allowed.has(conflict.path); });
}

// If kubectl's annotation exists, it always has the configuration that was applied last.
void write_annotation(const Json& config, Json& object) {
  Json* annotations = object.find_path({"metadata", "annotations"});
  if (annotations == nullptr || annotations->get_string(kLastApplied).empty()) return;
  Json applied = config;
  if (Json* own = applied.find_path({"metadata", "annotations"}); own && own->is_object())
    own->erase(kLastApplied);
  annotations->set(kLastApplied, print_json(applied) + "\n");
}

Json without_times(const Json& metadata) {
  Json copy = metadata;
  if (Json* list = copy.find("managedFields"); list != nullptr && list->is_array())
    for (Json& entry : list->as_array()) entry.erase("time");
  return copy;
}

}  // namespace

void track_update(const ServedKind& kind, const Json* before, Json& object, const Writer& by) {
  ManagedEntries entries = entries_of(before, object, by);
  object = without_managed_fields(object);
  // An object whose entries a client has removed is not tracked until it is applied.
  if (before != nullptr && entries.empty()) return;
  const Update update(kind, by);
  update.track(before != nullptr ? without_managed_fields(*before) : update.nothing(), object,
               by.manager, entries);
  write_entries(object, entries);
}

tl::expected<Json, Response> apply_config(const ServedKind& kind, const Json* before,
                                          const Json& config, const Writer& by, bool is_forced) {
  const Update update(kind, by);
  auto stored = ManagedEntries::read(
      before != nullptr ? before->get("metadata").get("managedFields") : Json::null());
  if (!stored)
    return tl::unexpected(
        server_error(fmt::format("failed to decode managed fields: {}", stored.error().message)));
  if (const auto errors = typed_errors(config, update.schema()); !errors.empty())
    return tl::unexpected(untyped(kind, config, errors));
  const Json live = before != nullptr ? without_managed_fields(*before) : update.nothing();
  if (stored->empty() && before != nullptr)
    update.track(update.nothing(), live, kBeforeApply, *stored);
  std::vector<Conflict> conflicts;
  ManagedEntries entries = *stored;
  Json merged = update.apply(live, config, is_forced, entries, conflicts);
  if (!conflicts.empty() && !is_forced) {
    if (by.manager == kKubectl) forgive(update, live, conflicts);
    if (!conflicts.empty()) return tl::unexpected(refuse(std::move(conflicts)));
    entries = std::move(*stored);
    merged = update.apply(live, config, true, entries, conflicts);
  }
  if (auto refusal = refuse_nulls(kind, merged)) return tl::unexpected(std::move(*refusal));
  if (by.manager == kKubectl) write_annotation(config, merged);
  write_entries(merged, entries);
  return merged;
}

bool is_equal_but_for_times(const Json& a, const Json& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a.as_object())
    if (name != "metadata" && value != b.get(name)) return false;
  return without_times(a.get("metadata")) == without_times(b.get("metadata"));
}

}  // namespace kube::server
