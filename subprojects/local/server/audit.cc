#include "local/server/audit.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "kube/model/json_text.hh"

namespace trainer {

using kube::Json;

namespace {

// A path under /api or /apis names this.
struct ResourcePath {
  std::string_view group, version, ns, resource, name, subresource;
};

// The members are empty for any other path.
ResourcePath read_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  ResourcePath parsed;
  std::size_t at = 0;
  const auto next = [&] { return at < parts.size() ? parts[at++] : std::string_view(); };
  const std::string_view root = next();
  if (root == "apis") parsed.group = next();
  if (root != "apis" && root != "api") return ResourcePath();
  parsed.version = next();
  // A namespace itself, and its status, are objects like others.
  if (parts.size() > at + 2 && parts[at] == "namespaces" && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize") {
    next();
    parsed.ns = next();
  }
  parsed.resource = next();
  parsed.name = next();
  parsed.subresource = next();
  return parsed;
}

std::string verb_of(const AuditRecord& record, const ResourcePath& parsed, std::string_view query) {
  const std::string_view method = record.method;
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE")
    return parsed.name.empty() && !parsed.resource.empty() ? "deletecollection" : "delete";
  const bool is_watch = ("&" + std::string(query)).find("&watch=") != std::string::npos &&
                        query.find("watch=false") == std::string_view::npos &&
                        query.find("watch=0") == std::string_view::npos;
  if (is_watch && !parsed.resource.empty()) return "watch";
  return parsed.name.empty() && !parsed.resource.empty() ? "list" : "get";
}

Json object_ref(const AuditRecord& record, const ResourcePath& parsed) {
  Json ref = Json::object({{"resource", parsed.resource}, {"apiVersion", parsed.version}});
  const std::string_view name = parsed.name.empty() ? std::string_view(record.name) : parsed.name;
  const std::pair<const char*, std::string_view> members[] = {{"apiGroup", parsed.group},
                                                              {"namespace", parsed.ns},
                                                              {"name", name},
                                                              {"subresource", parsed.subresource}};
  for (const auto& [member, value] : members)
    if (!value.empty()) ref.set(member, value);
  return ref;
}

}  // namespace

std::string audit_line(const AuditRecord& record, const std::string& id) {
  const std::string_view target = record.target;
  const auto question = target.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  const ResourcePath parsed = read_path(target.substr(0, question));
  const std::string verb = verb_of(record, parsed, query);
  Json line = Json::object({{"kind", "Event"},
                            {"apiVersion", "audit.k8s.io/v1"},
                            {"level", "Metadata"},
                            {"auditID", id},
                            {"stage", verb == "watch" ? "ResponseStarted" : "ResponseComplete"},
                            {"requestURI", record.target},
                            {"verb", verb},
                            {"user", Json::object({{"username", record.user}})},
                            {"sourceIPs", Json::array({"127.0.0.1"})},
                            {"userAgent", record.user_agent},
                            {"responseStatus", Json::object({{"code", record.status}})},
                            {"requestReceivedTimestamp", record.received.to_micro_string()},
                            {"stageTimestamp", record.answered.to_micro_string()}});
  if (!parsed.resource.empty()) line.set("objectRef", object_ref(record, parsed));
  return kube::print_json(line);
}

kube::Result<std::unique_ptr<Audit>> Audit::open(const std::string& file) {
  auto opened = node::open_owned(file, O_WRONLY | O_CREAT | O_APPEND);
  if (opened) return std::unique_ptr<Audit>(new Audit(std::move(*opened)));
  return kube::fail(kube::ErrorCode::kInvalid, "--audit: the file cannot be opened: {}",
                    opened.error().message);
}

void Audit::write(const AuditRecord& record) {
  const std::string id = fmt::format("{}-{}", ::getpid(), ++written_);
  const std::string line = audit_line(record, id) + "\n";
  [[maybe_unused]] const auto ignored = ::write(file_.get(), line.data(), line.size());
}

}  // namespace trainer
