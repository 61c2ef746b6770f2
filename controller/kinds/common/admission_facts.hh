// The rules of admission look up these facts; they are read before the rules are evaluated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "controller/admission/admission_reader.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

struct AdmissionFacts {
  using Object = AdmissionReader::Object;
  std::map<std::pair<std::string, kube::ObjectKey>, Object> runtimes;  // by kind and key
  Object jobset;
  std::shared_ptr<const std::string> snapshot;
  std::map<kube::ObjectKey, kube::Json> claims;
  std::set<std::string> priority_classes;

  AdmissionLookups lookups() const;
};

// Reads what needs_of() names; `request` lives in the caller's frame. Errors are the API server's.
kube::Task<kube::Result<AdmissionFacts>> read_facts(AdmissionReader& reader,
                                                    const AdmissionRequest& request);

}  // namespace trainer
