// Requests and responses of an API server do not depend on the transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace kube::server {

struct Request {
  std::string method = "GET";
  std::string target;        // path and query, escaped
  std::string content_type;  // the type of the body; empty without one
  std::string accept;
  std::string user_agent;  // names the field manager of a write that names none
  std::string body;

  // Returns `content_type` without parameters.
  std::string_view media_type() const {
    return std::string_view(content_type).substr(0, content_type.find(';'));
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::string> warnings;  // texts, one `Warning: 299 - "TEXT"` header each
};

// Returns a response whose body is the object.
Response json_response(int status, const Json& body);
// Returns a response whose body is a metav1.Status of a failure. `details` may be null.
Response failure(int status, std::string_view reason, std::string message, Json details = {});

}  // namespace kube::server
