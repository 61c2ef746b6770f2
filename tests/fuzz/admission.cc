// Reviews of any content are answered. A mutation applies, and after it a second one changes
// nothing.
#include "runtimes/admission/admission.hh"

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/plugins/registry.hh"
#include "tests/fuzz/fuzz.hh"

namespace {

using trainer::AdmissionAnswer;
using trainer::AdmissionRequest;

trainer::AdmissionLookups lookups() {
  static const auto runtimes = trainer::builtin_runtimes();
  trainer::AdmissionLookups lookups;
  lookups.runtime = [](const std::string&, const std::string&,
                       const std::string& name) -> std::shared_ptr<const kube::Json> {
    const auto& runtime = runtimes[name.size() % runtimes.size()];
    return {std::shared_ptr<const kube::Json>(), &runtime};
  };
  lookups.jobset = [](auto&&...) { return nullptr; };
  lookups.snapshot = [](auto&&...) { return nullptr; };
  lookups.priority_class_exists = [](const std::string& name) { return name.size() % 2 == 0; };
  lookups.claim = [](auto&&...) { return std::nullopt; };
  return lookups;
}

template <class Mutate>
void mutate(AdmissionRequest request, Mutate mutate_object, std::string_view text) {
  const AdmissionAnswer answer = mutate_object(request);
  if (!answer.is_allowed || answer.json_patch.is_null()) return;
  auto changed = kube::apply_json_patch(request.object, answer.json_patch);
  hold(changed.has_value(), "the patch applies", text, kube::print_json(answer.json_patch));
  request.object = std::move(*changed);
  const AdmissionAnswer again = mutate_object(request);
  hold(again.json_patch.is_null() || again.json_patch.empty(), "a mutation is complete", text,
       kube::print_json(again.json_patch));
}

// No webhook writes a V1 job; an update that changes nothing is answered as the create.
AdmissionAnswer validate_v1(AdmissionRequest request, const trainer::v1::Framework& framework,
                            std::string_view text) {
  const AdmissionAnswer answer = trainer::validate_v1job(request, framework);
  hold(answer.json_patch.is_null() || answer.json_patch.empty(), "a V1 job is not changed", text);
  if (request.operation != "CREATE") return answer;
  request.operation = "UPDATE";
  request.old_object = request.object;
  const AdmissionAnswer again = trainer::validate_v1job(request, framework);
  hold(again.message == answer.message, "an unchanged V1 job is refused for the same", text,
       again.message);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(data, size);
  const auto review = kube::parse_json(text);
  if (!review) return 0;
  const auto request = trainer::read_admission_review(*review);
  if (!request) return 0;
  static const trainer::AdmissionLookups reads = lookups();
  const trainer::jobset::Gates gates;
  AdmissionAnswer answer;
  (void)trainer::needs_of(*request, trainer::production_plugins());
  if (request->kind == "TrainJob") {
    mutate(
        *request, [](const auto& r) { return trainer::mutate_trainjob(r, kube::Time()); }, text);
    answer = trainer::validate_trainjob(
        *request, reads, trainer::PipelineOptions(trainer::production_plugins()), gates);
  } else if (request->kind == "JobSet") {
    mutate(
        *request, [](const auto& r) { return trainer::mutate_jobset(r); }, text);
    answer = trainer::validate_jobset(*request, reads, gates);
  } else if (const auto* framework = trainer::v1::find_framework(request->kind)) {
    answer = validate_v1(*request, *framework, text);
  } else {
    mutate(
        *request, [](const auto& r) { return trainer::mutate_runtime(r); }, text);
    answer = trainer::validate_runtime(*request,
                                       trainer::PipelineOptions(trainer::production_plugins()));
  }
  hold(answer.is_allowed || !answer.message.empty(), "a refusal has a text", text);
  const kube::Json response = trainer::admission_review_response(*review, answer);
  hold(response.find("response") != nullptr, "every review has a response", text);
  return 0;
}
