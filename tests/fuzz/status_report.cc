// A report of a training pod is refused, or valid by the TrainJob's schema. The first line is the
// request's path, the rest its body.
#include "api/api.hh"
#include "controller/status/report.hh"
#include "kube/model/json_text.hh"
#include "tests/fuzz/fuzz.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kube::Json;
  const std::string_view text = as_text(data, size);
  const std::size_t line = std::min(text.find('\n'), text.size());
  if (const auto key = trainer::read_report_path(text.substr(0, line), "status")) {
    hold(key->ns.find('/') == key->ns.npos && key->name.find('/') == key->name.npos,
         "names are no paths", key->ns, key->name);
  }
  const auto report = trainer::read_report(text.substr(std::min(line + 1, text.size())), "j");
  if (!report || report->trainer_status.is_null()) return 0;
  Json job = Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                           {"kind", "TrainJob"},
                           {"metadata", Json::object({{"name", "j"}, {"namespace", "ns"}})},
                           {"spec", Json::object({{"runtimeRef", Json::object({{"name", "rt"}})}})},
                           {"status", Json::object({{"trainerStatus", report->trainer_status}})}});
  trainer::apply_schema_defaults(job);
  const auto errors = trainer::check_schema(job);
  hold(errors.empty(), "what is written is valid", kube::print_json(report->trainer_status),
       kube::to_string(errors));
  return 0;
}
