#include "runtimes/trainjob/legacy.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "api/api.hh"
#include "api/describe/runtime_patch.hh"
#include "api/describe/schema_builder.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "kube/model/quantity.hh"
#include "runtimes/pipeline/unions.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::string_view kOverrides[] = {"podSpecOverrides", "podTemplateOverrides"};
// Each override is merged into all before it, so their number is limited to twice that of
// runtimePatches.
constexpr std::size_t kMaxOverrides = 32;
constexpr std::size_t kMaxBytes = 1'500'000;  // no larger object is stored
constexpr std::string_view kMetadataMaps[] = {"labels", "annotations"};
constexpr std::string_view kRemovedFields[] = {"podTemplateOverrides", "podSpecOverrides", "labels",
                                               "annotations"};

// Returns null if the spec has none.
const Json& processes_of(const Json& spec) {
  return spec.get_path({"trainer", "numProcPerNode"});
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

// Returns the pod template of an override. v2.0 wrote the pod spec's members beside targetJobs,
// v2.1 had metadata and spec.
Json template_of(std::string_view field, const Json& entry) {
  Json pod = Json::object();
  if (field == "podTemplateOverrides") {
    for (const std::string_view part : {"metadata", "spec"}) {
      if (const Json* value = entry.find(part)) pod.set(part, *value);
    }
    return pod;
  }
  Json spec = entry;
  for (const std::string_view part : {"targetJobs", "manager"}) spec.erase(part);
  pod.set("spec", std::move(spec));
  return pod;
}

// Warns about fields of an override that neither the older API nor a patch has. Strict validation
// does not find them, because the schema keeps all members of a removed field.
void warn_about_unknown(std::string_view field, const Json& entry, const std::string& path,
                        Conversion& conversion) {
  constexpr std::size_t kShown = 5;
  static const wire::Schema kPod = [] {
    wire::Schema schema;
    schema.document = wire::schema_of<PodTemplatePatch>(schema.predicates);
    return schema;
  }();
  const bool has_template = field == "podTemplateOverrides";
  std::vector<std::string> names = unknown_fields(template_of(field, entry), kPod);
  if (!has_template)
    for (std::string& name : names) name.erase(0, std::string_view("spec.").size());
  if (has_template && entry.is_object())
    for (const auto& [name, value] : entry.as_object())
      if (name != "targetJobs" && name != "manager" && name != "metadata" && name != "spec")
        names.push_back(name);
  if (names.empty()) return;
  const std::size_t hidden = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - hidden);
  conversion.warnings.push_back(fmt::format("{}: unknown field \"{}\"{}, which has no effect", path,
                                            fmt::join(names, "\", unknown field \""),
                                            hidden > 0 ? fmt::format(" and {} more", hidden) : ""));
}

// Returns one override as a JobSetSpec of patches, one for each target job. `bytes` counts those of
// all overrides.
Json replicated_jobs_of(std::string_view field, const Json& entry, const std::string& path,
                        std::size_t& bytes, Conversion& conversion) {
  Json jobs = Json::array();
  const Json pod = template_of(field, entry);
  const std::size_t weight = kube::print_json(pod).size();
  for (const Json& target : entry.get_array("targetJobs")) {
    bytes += weight;
    if (bytes > kMaxBytes) {
      conversion.errors.push_back(kube::invalid(
          kube::join_field(path, "targetJobs"),
          static_cast<std::int64_t>(entry.get_array("targetJobs").size()),
          fmt::format("the overrides would have more than {} bytes, written once for each of their "
                      "jobs: name fewer jobs",
                      kMaxBytes)));
      return jobs;
    }
    const std::string_view name =
        target.is_string() ? std::string_view(target.as_string()) : target.get_string("name");
    if (name.empty()) continue;
    jobs.push_back(
        Json::object({{"name", name},
                      {"template", Json::object({{"spec", Json::object({{"template", pod}})}})}}));
  }
  if (jobs.empty()) {
    conversion.errors.push_back(
        kube::required(kube::join_field(path, "targetJobs"),
                       "name the replicated jobs to change, or write "
                       "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs "
                       "instead"));
  }
  return jobs;
}

void warn_renamed(Conversion& conversion, std::string_view field, std::string_view today) {
  conversion.warnings.push_back(fmt::format(
      "{} is a field of Trainer v2.0 or v2.1 and was converted: write {} instead", field, today));
}

// Merges all overrides in their order; the older controllers applied them in the same way.
void convert_overrides(Json& spec, Json& patch, Conversion& conversion) {
  for (const std::string_view field : kOverrides) {
    const Json* entries = spec.find(field);
    if (!entries) continue;
    if (entries->size() > kMaxOverrides) {
      conversion.errors.push_back(
          kube::too_many(kube::join_field("spec", field), entries->size(), kMaxOverrides));
      return;
    }
    Json merged = Json::object();
    if (const Json* so_far = patch.find_path({"template", "spec"})) merged = *so_far;
    std::size_t i = 0;
    std::size_t bytes = 0;
    for (const Json& entry : spec.get_array(field)) {
      const std::string path = kube::join_index(kube::join_field("spec", field), i++);
      warn_about_unknown(field, entry, path, conversion);
      const Json jobs = replicated_jobs_of(field, entry, path, bytes, conversion);
      auto next = pipeline::merge_runtime_patch(std::move(merged),
                                                Json::object({{"replicatedJobs", jobs}}));
      if (next) {
        merged = std::move(*next);
      } else {
        conversion.errors.push_back(kube::invalid(path, entry, next.error().message));
        return;
      }
    }
    if (!merged.empty()) patch["template"].set("spec", std::move(merged));
    warn_renamed(conversion, kube::join_field("spec", field),
                 "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[]."
                 "template.spec.template");
    spec.erase(field);
  }
}

void convert_metadata(Json& spec, Json& patch, Conversion& conversion) {
  for (const std::string_view map : kMetadataMaps) {
    const Json* value = spec.find(map);
    if (!value) continue;
    if (!value->empty()) patch["template"]["metadata"].set(map, *value);
    warn_renamed(
        conversion, kube::join_field("spec", map),
        fmt::format("spec.runtimePatches[].trainingRuntimeSpec.template.metadata.{}", map));
    spec.erase(map);
  }
}

// This replaces the patch of an earlier conversion, so that applying an old file twice changes
// nothing.
void store_patch(Json& spec, Json patch) {
  if (patch.empty()) return;
  Json& patches = spec["runtimePatches"];
  if (!patches.is_null() && !patches.is_array()) return;  // the schema refuses it
  if (patches.is_null()) patches = Json::array();
  for (Json& entry : patches.as_array()) {
    if (entry.get_string("manager") != kLegacyManager) continue;
    entry.set("trainingRuntimeSpec", std::move(patch));
    return;
  }
  patches.push_back(
      Json::object({{"manager", kLegacyManager}, {"trainingRuntimeSpec", std::move(patch)}}));
}

// The word "cpu" means one process a CPU, also beside accelerators.
std::optional<std::int64_t> cpus_of(const Json& trainer) {
  for (const std::string_view kind : {"requests", "limits"}) {
    const Json* cpu = trainer.find_path({"resourcesPerNode", kind, "cpu"});
    if (!cpu) continue;
    if (const auto amount = kube::Quantity::read(*cpu); amount && amount->value() >= 1)
      return amount->value();
  }
  return std::nullopt;
}

void convert_processes(Json& spec, Conversion& conversion) {
  Json* trainer = spec.find("trainer");
  const Json* stored = trainer ? trainer->find("numProcPerNode") : nullptr;
  if (!stored || !stored->is_string()) return;
  const Json value = *stored;
  const std::string path = "spec.trainer.numProcPerNode";
  const std::string& text = value.as_string();
  std::optional<std::int64_t> count = parse_count(text);
  if (text == "cpu") count = cpus_of(*trainer);
  if (count) {
    trainer->set("numProcPerNode", *count);
    conversion.warnings.push_back(
        fmt::format("{} is an integer since Trainer v2.2: \"{}\" was converted, write {} instead",
                    path, text, *count));
  } else if (text == "auto" || text == "gpu") {
    trainer->erase("numProcPerNode");
    conversion.warnings.push_back(
        fmt::format("{} is an integer since Trainer v2.2: \"{}\" was dropped, for without the "
                    "field every node runs as many "
                    "processes as its runtime says or its resources suggest",
                    path, text));
  } else {
    conversion.errors.push_back(kube::invalid(path, value,
                                              "must be an integer: write how many processes a node "
                                              "runs, or leave it out to follow its resources"));
  }
}

// --- runtimes ---

// Returns the number of nodes if an elastic policy allows only one: nullopt if it allows several, a
// null value if it says nothing about nodes.
std::optional<Json> fixed_nodes(const Json& elastic) {
  const Json* least = elastic.find("minNodes");
  const Json* most = elastic.find("maxNodes");
  if (!least && !most) return Json();
  if (!least || !most || !least->is_int() || *least != *most) return std::nullopt;
  return *most;
}

// Returns the object below a path, and makes it if it is missing; nullptr if something else is in
// its place.
Json* object_at(Json& root, std::initializer_list<std::string_view> path) {
  Json* at = &root;
  for (const std::string_view name : path) {
    if (!at->is_object() && !at->is_null()) return nullptr;
    at = &(*at)[name];
  }
  return at->is_object() || at->is_null() ? at : nullptr;
}

void convert_elastic_policy(Json& spec, Conversion& conversion) {
  Json* torch = spec.find_path({"mlPolicy", "torch"});
  const Json* stored = torch ? torch->find("elasticPolicy") : nullptr;
  if (!stored) return;
  const Json elastic = *stored;
  const std::string field = "spec.mlPolicy.torch.elasticPolicy";
  const auto nodes = fixed_nodes(elastic);
  if (!elastic.get_array("metrics").empty()) {
    conversion.errors.push_back(
        kube::invalid(kube::join_field(field, "metrics"), elastic.get("metrics"),
                      "leave them out, and create a HorizontalPodAutoscaler whose scaleTargetRef "
                      "is the TrainJob"));
    return;
  }
  if (!nodes) {
    torch->find("elasticPolicy")->erase("metrics");
    return;
  }
  torch->erase("elasticPolicy");
  if (!nodes->is_null()) spec["mlPolicy"].set("numNodes", *nodes);
  // It was PET_MAX_RESTARTS (Kubeflow Trainer v2.1, pkg/runtime/framework/plugins/torch).
  if (const Json* restarts = elastic.find("maxRestarts"); restarts && restarts->is_int()) {
    Json* failure = object_at(spec, {"runPolicy", "failurePolicy"});
    if (failure && !failure->find("processRestarts")) failure->set("processRestarts", *restarts);
  }
  warn_renamed(conversion, field,
               "spec.mlPolicy.numNodes and spec.runPolicy.failurePolicy.processRestarts");
}

void convert_implementation(Json& mpi, const std::string& path, Conversion& conversion) {
  static constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {"IntelMPI", "Intel"},
      {"intel", "Intel"},
      {"OpenMpi", "OpenMPI"},
      {"openmpi", "OpenMPI"},
      {"mpich", "MPICH"}};
  const std::string_view value = mpi.get_string("mpiImplementation");
  for (const auto& [old, today] : kSpellings) {
    if (value != old) continue;
    conversion.warnings.push_back(fmt::format("{}: \"{}\" was converted: write \"{}\" instead",
                                              kube::join_field(path, "mpiImplementation"), old,
                                              today));
    mpi.set("mpiImplementation", today);
    return;
  }
}

}  // namespace

// The match condition of the mutating webhook is the same (controller/kinds/trainjob/webhooks.cc).
bool has_legacy_fields(const Json& trainjob) {
  const Json* spec = trainjob.find("spec");
  if (!spec) return false;
  for (const std::string_view field : kRemovedFields)
    if (spec->find(field)) return true;
  return processes_of(*spec).is_string();
}

bool are_legacy_fields_changed(const Json& before, const Json& after) {
  if (!has_legacy_fields(before) && !has_legacy_fields(after)) return false;
  const Json& old_spec = before.get("spec");
  const Json& spec = after.get("spec");
  for (const std::string_view field : kRemovedFields)
    if (old_spec.get(field) != spec.get(field)) return true;
  return processes_of(old_spec) != processes_of(spec);
}

tl::expected<TrainJob, kube::FieldErrors> read_stored_trainjob(const Json& trainjob) {
  if (!has_legacy_fields(trainjob)) return read_trainjob(trainjob);
  Json converted = trainjob;
  const bool is_converted = convert_legacy_trainjob(converted).errors.empty();
  return read_trainjob(is_converted ? converted : trainjob);
}

Conversion convert_legacy_trainjob(Json& trainjob) {
  Conversion conversion;
  if (!has_legacy_fields(trainjob)) return conversion;
  Json& spec = *trainjob.find("spec");
  Json patch = Json::object();
  convert_overrides(spec, patch, conversion);
  convert_metadata(spec, patch, conversion);
  store_patch(spec, std::move(patch));
  convert_processes(spec, conversion);
  return conversion;
}

Conversion convert_legacy_runtime(Json& runtime) {
  Conversion conversion;
  Json* spec = runtime.find("spec");
  Json* policy = spec ? spec->find("mlPolicy") : nullptr;
  if (!policy || !policy->is_object()) return conversion;
  if (Json* mpi = policy->find("mpi"); mpi && mpi->is_object()) {
    convert_implementation(*mpi, "spec.mlPolicy.mpi", conversion);
  }
  if (Json* torch = policy->find("torch"); torch && torch->is_object())
    convert_elastic_policy(*spec, conversion);
  return conversion;
}

}  // namespace trainer
