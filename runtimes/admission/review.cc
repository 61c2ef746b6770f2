// AdmissionReviews (admission.k8s.io/v1) are read and written here.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/check_items.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

using kube::Json;

std::optional<AdmissionRequest> read_admission_review(const Json& review) {
  const Json* source = review.find("request");
  if (!source || !source->is_object() || source->get_string("uid").empty()) return std::nullopt;
  AdmissionRequest request;
  request.operation = source->get_string("operation");
  request.object = source->get("object");
  request.old_object = source->get("oldObject");
  request.ns = source->get_string("namespace");
  request.name = source->get_string("name");
  request.is_dry_run = source->get_bool("dryRun");
  request.kind = source->get("kind").get_string("kind");
  // A PATCH comes with UpdateOptions, too, so it looks like a PUT.
  const std::string_view manager = source->get("options").get_string("fieldManager");
  request.may_lack_fields =
      request.operation == "UPDATE" && (manager.empty() || manager.starts_with("kueue"));
  return request;
}

Json admission_review_response(const Json& review, const AdmissionAnswer& answer) {
  Json response = Json::object(
      {{"uid", review.get("request").get_string("uid")}, {"allowed", answer.is_allowed}});
  if (!answer.is_allowed) {
    response.set("status", Json::object({{"status", "Failure"},
                                         {"code", answer.code},
                                         {"reason", answer.reason},
                                         {"message", answer.message}}));
  }
  if (!answer.warnings.empty())
    response.set("warnings", Json::Array(answer.warnings.begin(),
                                         answer.warnings.begin() +
                                             std::min<std::ptrdiff_t>(std::ssize(answer.warnings),
                                                                      kube::kMaxWarnings)));
  if (answer.is_allowed && !answer.json_patch.empty()) {
    response.set("patchType", "JSONPatch");
    response.set("patch", kube::base64_encode(kube::print_json(answer.json_patch)));
  }
  return Json::object({{"apiVersion", "admission.k8s.io/v1"},
                       {"kind", "AdmissionReview"},
                       {"response", std::move(response)}});
}

}  // namespace trainer
