// `trainer local run` sorts the documents of its files into these.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controller/registration/kind_registration.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// The files hold these objects.
struct LocalObjects {
  std::vector<kube::Json> jobs;
  std::vector<std::pair<kube::Resource, kube::Json>> others;
};

// Gives objects without a namespace this one. Errors (kInvalid) name the document: a kind that
// local mode does not have, a job without a name or twice, no job at all.
kube::Result<LocalObjects> sort_objects(std::vector<kube::Json> documents, const std::string& ns,
                                        const Registry& registry);

}  // namespace trainer
