// A GET reads objects, lists, watches and logs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/server/api.hh"
#include "kube/server/refusals.hh"
#include "kube/server/selector.hh"
#include "kube/server/shown.hh"
#include "kube/server/tables.hh"
#include "kube/server/target.hh"

namespace kube::server {
namespace {

constexpr std::chrono::hours kLongestWatch{1};

// The token says where a list goes on: the version of its first page and the last key that was
// shown. Names and namespaces contain no "~".
struct Continue {
  std::int64_t version = 0;
  ObjectKey after;

  std::string print() const { return fmt::format("{}~{}~{}", version, after.ns, after.name); }
  static std::optional<Continue> parse(std::string_view text) {
    const std::size_t first = text.find('~');
    const std::size_t second = text.find('~', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
    const auto version = parse_number<std::int64_t>(text.substr(0, first));
    if (!version) return std::nullopt;
    return Continue{*version,
                    {std::string(text.substr(first + 1, second - first - 1)),
                     std::string(text.substr(second + 1))}};
  }
};

struct Page {
  std::vector<Object> objects;
  ObjectKey last;
  std::size_t remaining = 0;  // the number of objects on later pages
};

Page page_of(const ObjectStore::Collection& objects, const Target& target, const Selector& selector,
             const std::optional<Continue>& from, std::size_t limit) {
  Page page;
  auto at = from                    ? objects.upper_bound(from->after)
            : target.key.ns.empty() ? objects.begin()
                                    : objects.lower_bound(ObjectKey{target.key.ns, ""});
  for (; at != objects.end(); ++at) {
    const ObjectKey& key = at->first;
    if (!target.key.ns.empty() && key.ns != target.key.ns) break;
    const bool is_full = limit > 0 && page.objects.size() == limit;
    Object object = is_full && selector.empty() ? nullptr : at->second.get();
    if (object && !selector.matches(*object)) continue;
    if (is_full) {
      ++page.remaining;
      continue;
    }
    page.objects.push_back(std::move(object));
    page.last = key;
  }
  return page;
}

std::string print_list(const ServedKind& kind, const Page& page, const Json& metadata) {
  std::string text =
      fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[)",
                  kind.resource.kind, kind.resource.api_version(), print_json(metadata));
  for (std::size_t i = 0; i < page.objects.size(); ++i) {
    if (i > 0) text += ',';
    text += print_json(*shown(kind, *page.objects[i]));
  }
  return text + "]}\n";
}

// Sets the version that a list must have; nullopt if the current one may be used.
tl::expected<void, Response> check_version(const Query& query, const ObjectStore& store,
                                           const Resource& resource) {
  const std::string_view text = query.get("resourceVersion");
  if (text.empty() || text == "0") return {};
  const auto version = query.get_int("resourceVersion");
  if (!version || *version < 0)
    return tl::unexpected(bad_request(
        fmt::format("resourceVersion: Invalid value: \"{}\": it must be a number", text)));
  if (*version > store.version())
    return tl::unexpected(too_large_version(*version, store.version()));
  if (query.get("resourceVersionMatch") != "Exact") return {};
  const auto changes = store.changes_since(resource, *version);
  if (changes && changes->empty()) return {};
  return tl::unexpected(expired("The resourceVersion for the provided list is too old."));
}

std::string watch_line(std::string_view type, const Json& object) {
  return print_json(Json::object({{"type", type}, {"object", object}})) + "\n";
}

// The lines of a watch are made from these; its functions share them.
struct Lines {
  const ServedKind& kind;
  std::string ns;
  Selector selector;
  std::function<Json(const Json& object)> shape;  // returns the object, or a Table of it

  bool is_shown(const Object& object) const { return object && selector.matches(*object); }

  std::string of(const Change& change) const {
    const Resource& resource = *change.resource;
    if (!resource.has_same_objects(kind.resource) || (!ns.empty() && change.key.ns != ns))
      return {};
    const bool was_shown = is_shown(change.before);
    const bool is_now = is_shown(change.after);
    if (is_now) return watch_line(was_shown ? "MODIFIED" : "ADDED", shape(*change.after));
    if (!was_shown) return {};
    if (!change.after) return watch_line("DELETED", shape(*change.state));
    // The object no longer matches the selector. The event has its last state that did, with the
    // version of the change.
    Json last = *change.before;
    last["metadata"].set("resourceVersion", std::to_string(change.version));
    return watch_line("DELETED", shape(last));
  }

  std::string bookmark(std::int64_t version) const {
    Json object = Json::object({{"kind", kind.resource.kind}});
    object.set("apiVersion", kind.resource.api_version());
    object.set("metadata", Json::object({{"resourceVersion", std::to_string(version)}}));
    return watch_line("BOOKMARK", object);
  }
};

Outcome too_old(Watch watch, std::int64_t asked, std::int64_t current) {
  const Response status = expired(fmt::format("too old resource version: {} ({})", asked, current));
  watch.initial = {watch_line("ERROR", status_of(status))};
  watch.is_ended = true;
  return watch;
}

// The rules are those of pkg/apis/core/validation/validation.go, ValidatePodLogOptions.
std::optional<Response> check_log_options(const Query& query, std::string_view pod) {
  FieldErrors errors;
  const auto check = [&](const char* name, std::int64_t least, const char* why) {
    if (const auto value = query.get_int(name); value && *value < least)
      errors.push_back(invalid(name, *value, why));
  };
  for (const char* name : {"tailLines", "limitBytes", "sinceSeconds"})
    if (query.has(name) && !query.get_int(name))
      return bad_request(
          fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", query.get(name)));
  const std::string_view since = query.get("sinceTime");
  if (!since.empty() && !Time::parse(since))
    return bad_request(fmt::format("parsing time \"{}\": it must be as RFC 3339 says", since));
  check("tailLines", 0, "must be greater than or equal to 0");
  check("limitBytes", 1, "must be greater than 0");
  if (!since.empty() && query.has("sinceSeconds"))
    errors.push_back(
        forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  else
    check("sinceSeconds", 1, "must be greater than 0");
  if (errors.empty()) return std::nullopt;
  return invalid_object("PodLogOptions", "", pod, errors);
}

}  // namespace

Outcome Api::read(const Request& request, const Target& target) const {
  if (target.subresource == "log" && target.kind->resource.kind == "Pod") return read_log(target);
  if (target.key.name.empty())
    return target.query.is_true("watch") ? watch(request, target) : list(request, target);
  const Object object = store_.find(target.kind->resource, target.key);
  if (target.subresource == "scale" && target.kind->scale && object)
    return json_response(200, scale_of(*target.kind, *object));
  if (!target.subresource.empty() && !(target.subresource == "status" && target.kind->has_status))
    return target.subresource == "scale" && target.kind->scale
               ? not_found(target.kind->resource, target.key.name)
               : no_such_page();
  if (!object) return not_found(target.kind->resource, target.key.name);
  return answer(200, *target.kind, request, *object);
}

Outcome Api::list(const Request& request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  const Query& query = target.query;
  const auto selector =
      Selector::parse(query.get("labelSelector"), query.get("fieldSelector"), kind.resource);
  if (!selector) return bad_request(selector.error().message);
  std::optional<Continue> from;
  if (const std::string_view token = query.get("continue"); !token.empty()) {
    from = Continue::parse(token);
    if (!from) return bad_request("continue key is not valid");
    if (!store_.changes_since(kind.resource, from->version))
      return expired(
          "The provided continue parameter is too old to display a consistent list result. You can "
          "start a new list without the continue parameter.");
  } else if (auto checked = check_version(query, store_, kind.resource); !checked) {
    return std::move(checked.error());
  }
  const auto limit =
      static_cast<std::size_t>(std::max<std::int64_t>(0, query.get_int("limit").value_or(0)));
  const Page page = page_of(store_.all(kind.resource), target, *selector, from, limit);
  const std::int64_t version = from ? from->version : store_.version();
  Json metadata = Json::object({{"resourceVersion", std::to_string(version)}});
  if (page.remaining > 0) {
    metadata.set("continue", Continue{version, page.last}.print());
    if (selector->empty())
      metadata.set("remainingItemCount", static_cast<std::int64_t>(page.remaining));
  }
  if (wants_table(request.accept)) {
    std::vector<const Json*> rows;
    for (const Object& object : page.objects) rows.push_back(object.get());
    return json_response(
        200, table_of(kind, rows, metadata, query.get("includeObject"), environment_.now()));
  }
  Response response;
  response.body = print_list(kind, page, metadata);
  return response;
}

Outcome Api::watch(const Request& request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  const Query& query = target.query;
  if (query.is_true("sendInitialEvents"))
    return invalid_object(
        "ListOptions", "meta.k8s.io", "",
        {forbidden("sendInitialEvents",
                   "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
                   "enabled")});
  auto selector =
      Selector::parse(query.get("labelSelector"), query.get("fieldSelector"), kind.resource);
  if (!selector) return bad_request(selector.error().message);
  auto shape = [this, &kind, is_table = wants_table(request.accept),
                include = std::string(query.get("includeObject"))](const Json& object) {
    return is_table ? table_of(kind, object, include, environment_.now()) : *shown(kind, object);
  };
  const auto lines = std::make_shared<const Lines>(
      Lines{kind, target.key.ns, std::move(*selector), std::move(shape)});
  Watch watch;
  watch.kind = &kind;
  watch.line = [lines](const Change& change) { return lines->of(change); };
  if (query.is_true("allowWatchBookmarks"))
    watch.bookmark = [lines](std::int64_t version) { return lines->bookmark(version); };
  if (const auto seconds = query.get_int("timeoutSeconds"); seconds && *seconds > 0)
    watch.timeout = std::min<std::chrono::seconds>(std::chrono::seconds(*seconds), kLongestWatch);
  const std::string_view from = query.get("resourceVersion");
  if (from.empty() || from == "0") {
    const Page page = page_of(store_.all(kind.resource), target, lines->selector, {}, 0);
    for (const Object& object : page.objects)
      watch.initial.push_back(watch_line("ADDED", lines->shape(*object)));
    return watch;
  }
  const auto version = query.get_int("resourceVersion");
  if (!version)
    return bad_request(
        fmt::format("resourceVersion: Invalid value: \"{}\": it must be a number", from));
  const auto changes = store_.changes_since(kind.resource, *version);
  if (!changes) return too_old(std::move(watch), *version, store_.version());
  for (const Change& change : *changes) {
    std::string line = lines->of(change);
    if (!line.empty()) watch.initial.push_back(std::move(line));
  }
  return watch;
}

Outcome Api::read_log(const Target& target) const {
  const Query& query = target.query;
  if (auto refusal = check_log_options(query, target.key.name)) return *std::move(refusal);
  const Object pod = store_.find(target.kind->resource, target.key);
  if (!pod) return not_found(target.kind->resource, target.key.name);
  std::vector<std::string> names;
  for (const auto* list : {"containers", "initContainers"})
    for (const Json& container : pod->get("spec").get_array(list))
      names.emplace_back(container.get_string("name"));
  LogQuery log;
  log.pod = target.key;
  log.container = query.get("container");
  const std::size_t main = pod->get("spec").get_array("containers").size();
  if (log.container.empty() && main == 1) log.container = names.front();
  if (log.container.empty())
    return bad_request(fmt::format(
        "a container name must be specified for pod {}, choose one of: [{}]", target.key.name,
        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(main), " ")));
  if (std::find(names.begin(), names.end(), log.container) == names.end())
    return bad_request(
        fmt::format("container {} is not valid for pod {}", log.container, target.key.name));
  log.is_followed = query.is_true("follow");
  log.has_timestamps = query.is_true("timestamps");
  log.is_previous = query.is_true("previous");
  log.tail_lines = query.get_int("tailLines");
  log.limit_bytes = query.get_int("limitBytes");
  if (const auto seconds = query.get_int("sinceSeconds"))
    log.since = environment_.now() + std::chrono::seconds(-*seconds);
  else
    log.since = Time::parse(query.get("sinceTime"));
  return log;
}

}  // namespace kube::server
