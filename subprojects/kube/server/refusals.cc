#include "kube/server/refusals.hh"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "kube/model/json_text.hh"

namespace kube::server {
namespace {

Json details_of(std::string_view kind, std::string_view group, std::string_view name) {
  Json details = Json::object();
  if (!name.empty()) details.set("name", name);
  if (!group.empty()) details.set("group", group);
  if (!kind.empty()) details.set("kind", kind);
  return details;
}

// These are metav1.CauseType, by FieldError::Type.
constexpr std::string_view kCauses[] = {
    "FieldValueInvalid",      "FieldValueRequired",    "FieldValueForbidden",
    "FieldValueNotSupported", "FieldValueDuplicate",   "FieldValueTooLong",
    "FieldValueTooMany",      "FieldValueTypeInvalid", "InternalError"};
static_assert(std::size(kCauses) == static_cast<std::size_t>(FieldError::Type::kInternal) + 1);

}  // namespace

Response json_response(int status, const Json& body) {
  Response response;
  response.status = status;
  response.body = print_json(body);
  return response;
}

Response failure(int status, std::string_view reason, std::string message, Json details) {
  Json body = Json::object({{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Failure"}});
  body.set("metadata", Json::object()).set("code", status).set("message", std::move(message));
  if (!reason.empty()) body.set("reason", reason);
  if (!details.empty()) body.set("details", std::move(details));
  return json_response(status, body);
}

std::string qualified(std::string_view name, std::string_view group) {
  return group.empty() ? std::string(name) : fmt::format("{}.{}", name, group);
}

Response not_found(const Resource& resource, std::string_view name) {
  return failure(
      404, "NotFound",
      fmt::format("{} \"{}\" not found", qualified(resource.plural, resource.group), name),
      details_of(resource.plural, resource.group, name));
}

Response already_exists(const Resource& resource, std::string_view name, bool is_ending) {
  return failure(
      409, "AlreadyExists",
      fmt::format("{}{} \"{}\" already exists", is_ending ? "object is being deleted: " : "",
                  qualified(resource.plural, resource.group), name),
      details_of(resource.plural, resource.group, name));
}

Response conflict(const Resource& resource, std::string_view name, std::string_view why) {
  return failure(409, "Conflict",
                 fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                             qualified(resource.plural, resource.group), name, why),
                 details_of(resource.plural, resource.group, name));
}

Response modified(const Resource& resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Response invalid_object(std::string_view kind, std::string_view group, std::string_view name,
                        const FieldErrors& errors) {
  Json details = details_of(kind, group, name);
  Json causes = Json::array();
  for (const FieldError& error : errors) {
    // The body of an error is its text without the path.
    const std::string text = error.to_string();
    const std::size_t prefix = (error.path.empty() ? 5 : error.path.size()) + 2;
    Json cause = Json::object({{"reason", kCauses[static_cast<std::size_t>(error.type)]},
                               {"message", text.substr(prefix)}});
    cause.set("field", error.path.empty() ? "<nil>" : error.path);
    causes.push_back(std::move(cause));
  }
  if (!errors.empty()) details.set("causes", std::move(causes));
  return failure(
      422, "Invalid",
      fmt::format("{} \"{}\" is invalid: {}", qualified(kind, group), name, to_string(errors)),
      std::move(details));
}

Response forbidden_write(const Resource& resource, std::string_view name, std::string_view why) {
  return failure(403, "Forbidden",
                 fmt::format("{} \"{}\" is forbidden: {}",
                             qualified(resource.plural, resource.group), name, why),
                 details_of(resource.plural, resource.group, name));
}

Response not_storable(const Resource& resource, std::string_view name, const Error& error) {
  const std::string object =
      fmt::format("{} \"{}\"", qualified(resource.kind, resource.group), name);
  if (error.code == ErrorCode::kTooLarge)
    return too_large(
        fmt::format("{}: {}: split it, or keep the data in files", error.message, object));
  return failure(422, "Invalid",
                 fmt::format("{} is invalid: it could not be read back, so it was not stored: {}: "
                             "make it flatter or smaller",
                             object, error.message),
                 details_of(resource.kind, resource.group, name));
}

Response too_large(std::string_view why) {
  return failure(413, "RequestEntityTooLarge", fmt::format("Request entity too large: {}", why));
}

Response bad_request(std::string message) {
  return failure(400, "BadRequest", std::move(message));
}

Response expired(std::string message) {
  return failure(410, "Expired", std::move(message));
}

Response too_large_version(std::int64_t asked, std::int64_t current) {
  Json cause = Json::object({{"reason", "ResourceVersionTooLarge"}});
  cause.set("message", "Too large resource version");
  Json details = Json::object({{"retryAfterSeconds", 1}});
  details.set("causes", Json::array({std::move(cause)}));
  return failure(
      504, "Timeout",
      fmt::format("Timeout: Too large resource version: {}, current: {}", asked, current),
      std::move(details));
}

Response method_not_allowed() {
  return failure(405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource");
}

Response not_streamed(std::string_view subresource) {
  return failure(405, "MethodNotAllowed",
                 fmt::format("pods/{} is not served here: {}", subresource,
                             subresource == "portforward"
                                 ? "connect to the address of the pod, which `kubectl get pods -o "
                                   "wide` shows"
                                 : "a pod is processes of this machine, use its own tools"));
}

Response unsupported_media_type(std::string_view accepted) {
  return failure(415, "UnsupportedMediaType",
                 fmt::format("the body of the request was in an unknown format - accepted media "
                             "types include: {}",
                             accepted));
}

Response no_such_page() {
  return {404, "text/plain; charset=utf-8", "404 page not found\n", {}};
}

Response server_error(std::string message) {
  return failure(500, "", std::move(message));
}

Json status_of(const Response& response) {
  return parse_json(response.body).value_or(Json());
}

}  // namespace kube::server
