// The API server refuses a request with these answers, in the words of
// k8s.io/apimachinery/pkg/api/errors.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/field_error.hh"
#include "kube/model/meta.hh"
#include "kube/server/request.hh"

namespace kube::server {

// Returns "jobs.batch" or "pods".
std::string qualified(std::string_view name, std::string_view group);

Response not_found(const Resource& resource, std::string_view name);
// `is_ending` says that the object that has the name is being deleted.
Response already_exists(const Resource& resource, std::string_view name, bool is_ending);
// Answers "Operation cannot be fulfilled on jobs.batch "x": WHY".
Response conflict(const Resource& resource, std::string_view name, std::string_view why);
// Answers a write whose resourceVersion is not the stored one.
Response modified(const Resource& resource, std::string_view name);
// Answers 422 with a cause for each error. `kind` and `group` are "" for a patch that cannot be
// decoded.
Response invalid_object(std::string_view kind, std::string_view group, std::string_view name,
                        const FieldErrors& errors);
Response forbidden_write(const Resource& resource, std::string_view name, std::string_view why);
// Answers 413 or 422 for an object that readable_text() refuses.
Response not_storable(const Resource& resource, std::string_view name, const Error& error);
// Answers 413. `why` continues "Request entity too large: ".
Response too_large(std::string_view why);
Response bad_request(std::string message);
Response expired(std::string message);
Response too_large_version(std::int64_t asked, std::int64_t current);
Response method_not_allowed();
// Answers for a subresource of pods that needs a kubelet: "exec", "attach", "portforward", ...
Response not_streamed(std::string_view subresource);
Response unsupported_media_type(std::string_view accepted);
// Answers for a path that is not served, with a text that clients know.
Response no_such_page();
// Answers an error that has no reason of its own.
Response server_error(std::string message);

// Returns the Status in a response.
Json status_of(const Response& response);

}  // namespace kube::server
