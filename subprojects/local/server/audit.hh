// The audit log has a line for each request, in the form of kube-apiserver's at the level Metadata.
#pragma once

#include <memory>
#include <string>

#include "kube/model/error.hh"
#include "kube/model/time.hh"
#include "kube/server/request.hh"
#include "local/node/owned.hh"

namespace trainer {

struct AuditRecord {
  std::string method;
  std::string target;
  std::string user;
  std::string user_agent;
  std::string name;  // the name of the object of a create, whose target has no name
  kube::Time received;
  kube::Time answered;
  int status = 0;
};

// Returns the line, without its end (k8s.io/apiserver/pkg/apis/audit/v1 Event). Pure.
std::string audit_line(const AuditRecord& record, const std::string& id);

// Concurrency: one thread.
class Audit {
 public:
  // Opens the file to append to it, or makes it. Errors (kInvalid) name it; it is also an error if
  // another user could have put it there.
  static kube::Result<std::unique_ptr<Audit>> open(const std::string& file);
  // A line that cannot be written is left out: a full disk does not end requests.
  void write(const AuditRecord& record);

 private:
  explicit Audit(node::Fd file) : file_(std::move(file)) {}
  node::Fd file_;
  std::uint64_t written_ = 0;
};

}  // namespace trainer
