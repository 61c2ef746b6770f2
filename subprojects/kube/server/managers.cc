#include "kube/server/managers.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace kube::server {
namespace {

constexpr std::size_t kMaxUpdates = 10;
constexpr std::string_view kOldUpdates = "ancient-changes";

}  // namespace

std::string ManagerId::print() const {
  std::string text = fmt::format("\"{}\"", manager);
  if (!subresource.empty()) text += fmt::format(" with subresource \"{}\"", subresource);
  if (operation == "Update") text += fmt::format(" using {}", api_version);
  return text;
}

Result<ManagedEntries> ManagedEntries::read(const Json& managed_fields) {
  ManagedEntries all;
  if (!managed_fields.is_array()) return all;
  for (const Json& item : managed_fields.as_array()) {
    ManagedEntry entry;
    entry.api_version = item.get_string("apiVersion");
    entry.id.manager = item.get_string("manager");
    entry.id.operation = item.get_string("operation");
    entry.id.subresource = item.get_string("subresource");
    entry.time = item.get_string("time");
    if (!entry.is_apply() && entry.id.operation != "Update")
      return fail(ErrorCode::kInvalid, "operation must be `Apply` or `Update`");
    if (entry.api_version.empty()) return fail(ErrorCode::kInvalid, "apiVersion must not be empty");
    if (item.get_string("fieldsType") != "FieldsV1")
      return fail(ErrorCode::kInvalid, "fieldsType must be `FieldsV1`");
    if (!entry.is_apply()) entry.id.api_version = entry.api_version;
    auto fields = FieldSet::read(item.find("fieldsV1") ? item.get("fieldsV1") : Json::object());
    if (!fields) return tl::unexpected(std::move(fields.error()));
    entry.fields = std::move(*fields);
    if (ManagedEntry* known = all.find(entry.id)) {
      *known = std::move(entry);
    } else {
      all.entries_.push_back(std::move(entry));
    }
  }
  return all;
}

Json ManagedEntries::to_json() const {
  std::vector<const ManagedEntry*> sorted;
  for (const ManagedEntry& entry : entries_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const ManagedEntry* a, const ManagedEntry* b) {
    const auto rank = [](const ManagedEntry& entry) {
      return std::tie(entry.id.operation, entry.time, entry.id.manager, entry.api_version,
                      entry.id.subresource);
    };
    return rank(*a) < rank(*b);
  });
  Json list = Json::array();
  for (const ManagedEntry* entry : sorted) {
    Json item = Json::object({{"manager", entry->id.manager}, {"operation", entry->id.operation}});
    item.set("apiVersion", entry->api_version).set("fieldsType", "FieldsV1");
    item.set("fieldsV1", entry->fields.to_json());
    if (!entry->time.empty()) item.set("time", entry->time);
    if (!entry->id.subresource.empty()) item.set("subresource", entry->id.subresource);
    list.push_back(std::move(item));
  }
  return list.empty() ? Json() : list;
}

ManagedEntry* ManagedEntries::find(const ManagerId& id) {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&id](const ManagedEntry& entry) { return entry.id == id; });
  return at == entries_.end() ? nullptr : &*at;
}

ManagedEntry& ManagedEntries::at(const ManagerId& id, const std::string& api_version) {
  if (ManagedEntry* known = find(id)) return *known;
  ManagedEntry entry;
  entry.id = id;
  entry.api_version = api_version;
  return entries_.emplace_back(std::move(entry));
}

void ManagedEntries::erase_empty() {
  std::erase_if(entries_, [](const ManagedEntry& entry) { return entry.fields.empty(); });
}

void ManagedEntries::merge_oldest_updates() {
  std::vector<ManagerId> updates;
  for (const ManagedEntry& entry : entries_)
    if (!entry.is_apply()) updates.push_back(entry.id);
  std::sort(updates.begin(), updates.end(), [this](const ManagerId& a, const ManagerId& b) {
    return std::tie(find(a)->time, a) < std::tie(find(b)->time, b);
  });
  std::size_t count = updates.size();
  // By version: the oldest entry, into which others are merged.
  std::map<std::string, ManagerId> first;
  for (const ManagerId& id : updates) {
    if (count <= kMaxUpdates) return;
    const auto [oldest, is_new] = first.try_emplace(id.api_version, id);
    if (is_new) continue;
    const ManagerId bucket{std::string(kOldUpdates), "Update", id.api_version, ""};
    if (find(bucket) == nullptr) find(oldest->second)->id = bucket;
    if (id == bucket) continue;
    ManagedEntry& all = *find(bucket);
    const ManagedEntry& entry = *find(id);
    all.fields = all.fields | entry.fields;
    all.time = entry.time;
    std::erase_if(entries_, [&id](const ManagedEntry& known) { return known.id == id; });
    --count;
  }
}

}  // namespace kube::server
