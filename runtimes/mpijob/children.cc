// The parts of a job's children that a plan reads.
#include <utility>

#include "kube/model/digest.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;
using kube::JsonFilter;
using enum kube::JsonFilter::Members;

JsonFilter job_members() {
  return {"",
          kInclude,
          {{"spec",
            kInclude,
            {{"suspend"},
             {"template",
              kInclude,
              {{"spec", kInclude, {{"nodeSelector"}, {"tolerations"}, {"schedulingGates"}}}}}}},
           {"status", kInclude, {{"conditions"}, {"failed"}, {"startTime"}, {"completionTime"}}}}};
}

}  // namespace

JsonFilter seen_of_child(const kube::Resource& resource) {
  if (resource.kind == "Job") return job_members();
  if (resource.kind == "Service")
    return {"", kInclude, {{"spec", kInclude, {{"selector"}, {"publishNotReadyAddresses"}}}}};
  return {"", kInclude, {{"data"}}};
}

Json view_of_child(const kube::Resource& resource, Json seen) {
  const bool is_secret = resource.kind == "Secret";
  if (!is_secret && resource.kind != "ConfigMap") return seen;
  Json data = Json::object();
  for (const auto& [key, value] : seen.get_object("data"))
    data.set(key, is_secret ? Json(true) : Json(digest_of(value)));
  return Json::object({{"data", std::move(data)}});
}

std::string digest_of(const Json& value) {
  return value.is_string() ? kube::sha256_hex(value.as_string()) : std::string();
}

}  // namespace trainer::mpijob
