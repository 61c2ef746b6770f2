#include "kube/server/tables.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"
#include "kube/server/accept.hh"
#include "kube/server/json_path.hh"

namespace kube::server {
namespace {

// Returns "1h", or "1h5m" if there is a rest.
std::string with_rest(std::int64_t count, char unit, std::int64_t rest, char smaller) {
  return rest == 0 ? fmt::format("{}{}", count, unit)
                   : fmt::format("{}{}{}{}", count, unit, rest, smaller);
}

std::string print_value(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_double()) return print_double(value.as_double(), DoubleStyle::kValue);
  return print_json(value);
}

// The rules are those of apiextensions-apiserver, pkg/registry/customresource/tableconvertor: a
// value that does not have the column's type is left out.
Json cell_of(const Column& column, const Json& object, Time now) {
  const Json* found = find_json_path(object, column.path);
  if (found == nullptr || found->is_null()) return {};
  if (column.type == "string") return print_value(*found);
  if (column.type == "date")
    return found->is_string() ? human_age(found->as_string(), now) : Json();
  if (column.type == "boolean") return found->is_bool() ? *found : Json();
  if (!found->is_number()) return {};
  if (column.type == "integer" && found->is_double())
    return static_cast<std::int64_t>(std::trunc(found->as_double()));
  return *found;
}

const Column kName{"Name", "string", ".metadata.name", "The name of the object."};
const Column kAge{"Age", "date", ".metadata.creationTimestamp", "When the object was created."};

// Returns the columns of the row, if JSONPaths say its cells.
std::vector<Column> columns_by_path(const ServedKind& kind) {
  std::vector<Column> columns{kName};
  columns.insert(columns.end(), kind.columns.begin(), kind.columns.end());
  if (kind.columns.empty()) columns.push_back(kAge);
  return columns;
}

Json definition_of(const Column& column) {
  return Json::object({{"name", column.name},
                       {"type", column.type},
                       {"format", column.name == "Name" ? "name" : ""},
                       {"description", column.description},
                       {"priority", column.priority}});
}

Json object_of_row(const Json& object, std::string_view include_object) {
  if (include_object == "Object") return object;
  return Json::object({{"kind", "PartialObjectMetadata"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", object.get("metadata")}});
}

}  // namespace

bool wants_table(std::string_view accept) {
  return wants_form(accept, "Table", "meta.k8s.io", "v1");
}

Json table_of(const ServedKind& kind, const std::vector<const Json*>& objects,
              const Json& list_metadata, std::string_view include_object, Time now) {
  const std::vector<Column> columns = kind.cells ? kind.columns : columns_by_path(kind);
  Json::Array definitions;
  for (const Column& column : columns) definitions.push_back(definition_of(column));
  Json::Array rows;
  for (const Json* object : objects) {
    Json::Array cells;
    if (!kind.cells)
      for (const Column& column : columns) cells.push_back(cell_of(column, *object, now));
    Json row =
        Json::object({{"cells", kind.cells ? kind.cells(*object, now) : Json(std::move(cells))}});
    if (include_object != "None") row.set("object", object_of_row(*object, include_object));
    rows.push_back(std::move(row));
  }
  return Json::object({{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", list_metadata.is_object() ? list_metadata : Json::object()},
                       {"columnDefinitions", std::move(definitions)},
                       {"rows", std::move(rows)}});
}

Json table_of(const ServedKind& kind, const Json& object, std::string_view include_object,
              Time now) {
  const std::string_view version = object.get("metadata").get_string("resourceVersion");
  return table_of(kind, {&object}, Json::object({{"resourceVersion", version}}), include_object,
                  now);
}

std::string human_duration(std::chrono::seconds duration) {
  const std::int64_t seconds = duration.count();
  const std::int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  const std::int64_t years = days / 365;
  if (seconds < -1) return "<invalid>";
  if (seconds < 120) return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  if (minutes < 10) return with_rest(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return fmt::format("{}m", minutes);
  if (hours < 8) return with_rest(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return fmt::format("{}h", hours);
  if (days < 8) return with_rest(days, 'd', hours % 24, 'h');
  if (years < 2) return fmt::format("{}d", days);
  return years < 8 ? with_rest(years, 'y', days % 365, 'd') : fmt::format("{}y", years);
}

std::string human_age(std::string_view time, Time now) {
  if (time.empty()) return "<unknown>";
  const auto since = Time::parse(time);
  if (!since) return "<invalid>";
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - *since));
}

}  // namespace kube::server
