// What the API server refuses a request with, in the words of k8s.io/apimachinery/pkg/api/errors.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/field_error.hh"
#include "kube/model/meta.hh"
#include "kube/server/request.hh"

namespace kube::server {

// "jobs.batch", "pods"
std::string qualified(std::string_view name, std::string_view group);

Response not_found(const Resource& resource, std::string_view name);
// `is_ending`: the object that has the name is being deleted.
Response already_exists(const Resource& resource, std::string_view name, bool is_ending);
// "Operation cannot be fulfilled on jobs.batch "x": WHY"
Response conflict(const Resource& resource, std::string_view name, std::string_view why);
// Of a write whose resourceVersion is not the stored one.
Response modified(const Resource& resource, std::string_view name);
// 422 with a cause for each error. `kind` and `group` are "" for a patch that cannot be decoded.
Response invalid_object(std::string_view kind, std::string_view group, std::string_view name,
                        const FieldErrors& errors);
Response forbidden_write(const Resource& resource, std::string_view name, std::string_view why);
// 413 or 422, of an object that readable_text() refuses.
Response not_storable(const Resource& resource, std::string_view name, const Error& error);
// 413: `why` goes on from "Request entity too large: ".
Response too_large(std::string_view why);
Response bad_request(std::string message);
Response expired(std::string message);
Response too_large_version(std::int64_t asked, std::int64_t current);
Response method_not_allowed();
// Of a subresource of pods that needs a kubelet: "exec", "attach", "portforward", ...
Response not_streamed(std::string_view subresource);
Response unsupported_media_type(std::string_view accepted);
// A path that is not served; as text, which clients know.
Response no_such_page();
// An error that has no reason of its own.
Response server_error(std::string message);

// The Status in a response.
Json status_of(const Response& response);

}  // namespace kube::server
