#include "kube/server/object_store.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "kube/model/json_text.hh"

namespace kube::server {
namespace {

std::string name_of(const Resource& resource) {
  return resource.group + "/" + resource.plural;
}

std::int64_t version_of(const Json& object) {
  const std::string_view text = object.get("metadata").get_string("resourceVersion");
  std::int64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

// Watches show this state of a deleted object.
Object last_state(const Json& before, std::int64_t version) {
  Json last = before;
  last["metadata"].set("resourceVersion", std::to_string(version));
  return std::make_shared<const Json>(std::move(last));
}

// The answer says what the object lacks that every stored object has; "" if it lacks nothing.
std::string damage_of(const Json& object, const Resource& resource, const ObjectKey& key) {
  const Json& metadata = object.get("metadata");
  const std::string_view version = object.get_string("apiVersion");
  const std::size_t slash = version.rfind('/');
  const std::string_view group = slash == version.npos ? "" : version.substr(0, slash);
  if (object.get_string("kind") != resource.kind)
    return fmt::format("kind is not {}", resource.kind);
  if (version.empty() || group != resource.group)
    return fmt::format("apiVersion is not one of {}", resource.api_version());
  if (key_of(object) != key || key.name.empty())
    return fmt::format("metadata does not name {}", key.to_string());
  if (metadata.get_string("uid").empty()) return "metadata.uid is missing or no text";
  if (version_of(object) <= 0) return "metadata.resourceVersion is missing or no number";
  return "";
}

}  // namespace

ObjectKey key_of(const Json& object) {
  const Json& metadata = object.get("metadata");
  return {std::string(metadata.get_string("namespace")), std::string(metadata.get_string("name"))};
}

std::string uid_of(const Json& object) {
  return std::string(object.get("metadata").get_string("uid"));
}

Result<std::string> readable_text(const Json& object, const JsonLimits& limits) {
  std::string text = print_json(object);
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kTooLarge, "limit is {} bytes, and the object would have {}",
                limits.max_bytes, text.size());
  }
  const auto read = parse_json(text, limits);
  if (!read) return fail(ErrorCode::kInvalid, "{}", read.error().message);
  if (*read != object)
    return fail(ErrorCode::kInvalid,
                "a text or number of it is read as another one, such as a "
                "text that is not UTF-8");
  return text;
}

Object Held::get() const {
  if (!text_) return object_;
  Object object = used_.lock();
  if (!object) {
    // The text is never refused: it was read before.
    object = std::make_shared<const Json>(parse_json(*text_).value());
    used_ = object;
  }
  return object;
}

ObjectStore::ObjectStore(std::int64_t version, std::size_t max_history, Form form)
    : version_(version),
      start_(version),
      max_history_(max_history),
      is_text_(form == Form::kTexts) {}

void ObjectStore::add_collection(const Resource& resource) {
  Stored& stored = collections_[name_of(resource)];
  if (stored.resource.plural.empty()) stored.resource = resource;
}

ObjectStore::Stored& ObjectStore::stored(const Resource& resource) {
  const auto at = collections_.find(name_of(resource));
  if (at == collections_.end())
    throw std::logic_error("the store has no collection " + name_of(resource));
  return at->second;
}

const ObjectStore::Stored* ObjectStore::find_stored(const Resource& resource) const {
  const auto at = collections_.find(name_of(resource));
  return at == collections_.end() ? nullptr : &at->second;
}

const ObjectStore::Collection& ObjectStore::all(const Resource& resource) const {
  static const Collection kNone;
  const Stored* stored = find_stored(resource);
  return stored ? stored->objects : kNone;
}

Object ObjectStore::find(const Resource& resource, const ObjectKey& key) const {
  const Collection& objects = all(resource);
  const auto at = objects.find(key);
  return at == objects.end() ? nullptr : at->second.get();
}

const ObjectStore::Place* ObjectStore::find_uid(std::string_view uid) const {
  const auto at = places_.find(std::string(uid));
  return at == places_.end() ? nullptr : &at->second;
}

Held ObjectStore::held(Object object, std::shared_ptr<const std::string> text) const {
  return is_text_ ? Held(std::move(object), std::move(text)) : Held(std::move(object));
}

Result<Object> ObjectStore::put(const Resource& resource, Json object, const JsonLimits& limits) {
  Stored& in = stored(resource);
  Change change;
  change.resource = &in.resource;
  change.key = key_of(object);
  change.before = find(resource, change.key);
  Json& metadata = object["metadata"];
  if (change.before) {
    metadata.set("resourceVersion", change.before->get("metadata").get_string("resourceVersion"));
    if (object == *change.before) return change.before;
  }
  change.version = version_ + 1;
  metadata.set("resourceVersion", std::to_string(change.version));
  if (is_text_ || journal_) {
    auto text = readable_text(object, limits);
    if (!text) return tl::unexpected(std::move(text.error()));
    change.text = std::make_shared<const std::string>(std::move(*text));
  }
  change.after = std::make_shared<const Json>(std::move(object));
  change.state = change.after;
  Object stored_now = change.after;
  publish(in, change);
  return stored_now;
}

Object ObjectStore::erase(const Resource& resource, const ObjectKey& key) {
  Change change;
  change.before = find(resource, key);
  if (!change.before) return nullptr;
  Stored& in = stored(resource);
  change.resource = &in.resource;
  change.key = key;
  change.version = version_ + 1;
  change.state = last_state(*change.before, change.version);
  Object state = change.state;
  publish(in, change);
  return state;
}

void ObjectStore::publish(Stored& stored, const Change& change) {
  if (journal_) journal_(change);
  version_ = change.version;
  if (change.before) places_.erase(uid_of(*change.before));
  Past past{change.version, change.key, {}, {}};
  if (change.before) past.before = stored.objects.at(change.key);
  if (change.after) {
    past.after = stored.objects[change.key] = held(change.after, change.text);
    places_[uid_of(*change.after)] = {&stored.resource, change.key};
  } else {
    stored.objects.erase(change.key);
  }
  stored.history.push_back(std::move(past));
  if (stored.history.size() > std::max<std::size_t>(max_history_, 1)) {
    stored.dropped = stored.history.front().version;
    stored.history.pop_front();
  }
  for (const Observer& observer : observers_) observer(change);
}

Result<void> ObjectStore::restore(const Resource& resource, const ObjectKey& key,
                                  std::string text) {
  auto object = parse_json(text);
  if (!object) return tl::unexpected(std::move(object.error()));
  Stored& in = stored(resource);
  if (const std::string problem = damage_of(*object, resource, key); !problem.empty())
    return fail(ErrorCode::kInvalid, "{}", problem);
  if (const Place* other = find_uid(uid_of(*object)))
    return fail(ErrorCode::kInvalid, "metadata.uid is that of {} {}", other->resource->kind,
                other->key.to_string());
  version_ = std::max(version_, version_of(*object));
  start_ = version_;
  places_[uid_of(*object)] = {&in.resource, key};
  in.objects[key] = held(std::make_shared<const Json>(std::move(*object)),
                         std::make_shared<const std::string>(std::move(text)));
  return {};
}

Object ObjectStore::Past::state() const {
  Object last = after.get();
  return last ? last : last_state(*before.get(), version);
}

std::optional<std::vector<Change>> ObjectStore::changes_since(const Resource& resource,
                                                              std::int64_t version) const {
  const Stored* in = find_stored(resource);
  if (in == nullptr || version < std::max(in->dropped, start_)) return std::nullopt;
  const auto first =
      std::upper_bound(in->history.begin(), in->history.end(), version,
                       [](std::int64_t at, const Past& past) { return at < past.version; });
  std::vector<Change> changes;
  for (auto past = first; past != in->history.end(); ++past)
    changes.push_back({past->version, &in->resource, past->key, past->before.get(),
                       past->after.get(), past->state(), nullptr});
  return changes;
}

void ObjectStore::compact(const Resource& resource) {
  Stored& in = stored(resource);
  in.history.clear();
  in.dropped = version_;
}

}  // namespace kube::server
