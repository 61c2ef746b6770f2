// Prints what the controller would create, from files alone and with the same code: schema,
// defaults, admission, pipeline, JobSet controller.
#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <ostream>
#include <set>

#include "api/api.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/config/feature_gates.hh"
#include "kube/client/clock.hh"
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/yaml.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/plugins/registry.hh"

namespace trainer {
namespace {

using kube::Json;

// One object to print, with the sources of its values where they are asked for.
struct Rendered {
  Json object;
  std::vector<Explanation> explanations;
};

// One line for each path, with all sources of a value in order: the last one is effective.
std::vector<Explanation> merged(std::vector<Explanation> explanations) {
  std::vector<Explanation> lines;
  std::map<std::string, std::size_t> line_of;
  for (Explanation& item : explanations) {
    const auto [at, is_new] = line_of.emplace(item.path, lines.size());
    if (is_new) {
      lines.push_back(std::move(item));
    } else {
      lines[at->second].source += ", then " + item.source;
    }
  }
  return lines;
}

// The resource of a kind that is rendered; nullptr for any other kind.
const kube::Resource* resource_of(std::string_view kind) {
  for (const kube::Resource* resource :
       {&kTrainJobs, &kTrainingRuntimes, &kClusterTrainingRuntimes, &kJobSets}) {
    if (resource->kind == kind) return resource;
  }
  return nullptr;
}

// Offline, objects have no uid, and the API server refuses owner references without one.
void drop_unknown_owners(Json& object) {
  Json* metadata = object.find("metadata");
  if (metadata == nullptr) return;
  const Json::Array& owners = metadata->get_array("ownerReferences");
  const auto is_unknown = [](const Json& owner) { return owner.get_string("uid").empty(); };
  if (std::any_of(owners.begin(), owners.end(), is_unknown)) metadata->erase("ownerReferences");
}

class Renderer {
 public:
  Renderer(const RenderOptions& options, const FeatureGates& gates, Console& console)
      : options_(options), console_(console) {
    jobset_gates_.in_place_restart = gates.InPlaceRestart;
    jobset_gates_.restart_job = gates.RestartJob;
    jobset_gates_.elastic_jobset = gates.ElasticJobSet;
    pipeline_.is_progress_enabled = gates.TrainJobStatus;
    // Offline, the certificate is unknown; the Service's name is the installation's default.
    pipeline_.status_server_url =
        "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443";
    for (Json& builtin_runtime : builtin_runtimes()) add_runtime(std::move(builtin_runtime));
  }

  // A runtime of the files wins over a built-in runtime of the same name.
  void add(Json object) {
    const kube::Resource* resource = resource_of(object.get_string("kind"));
    if (resource == nullptr) return warn(object, "this kind is not rendered: it is left out");
    if (!is_of_version(object, resource->api_version())) return;
    if (*resource == kTrainJobs) {
      jobs_.push_back(std::move(object));
    } else if (*resource == kJobSets) {
      jobsets_.push_back(std::move(object));
    } else {
      if (!prepare(object) || !mutate(object, mutate_runtime(request_of(object)))) return;
      if (!refuse_unless_allowed(object, validate_runtime(request_of(object)))) return;
      add_runtime(std::move(object));
    }
  }

  void render_all() {
    if (jobs_.empty() && jobsets_.empty() && !is_refused_) {
      console_.err << "nothing to render: name a file with a TrainJob or a JobSet\n";
      is_refused_ = true;
    }
    for (Json& job : jobs_) render_trainjob(std::move(job));
    for (Json& jobset : jobsets_) render_jobset(std::move(jobset));
  }

  void print() const {
    if (options_.format == OutputFormat::kJson) return print_json();
    bool is_first = true;
    for (const Rendered& item : rendered_) {
      if (!is_first) console_.out << "---\n";
      is_first = false;
      console_.out << kube::print_yaml(item.object);
      if (item.explanations.empty()) continue;
      console_.out << "# Where the values above come from:\n";
      for (const Explanation& line : item.explanations) {
        console_.out << "#   " << line.path << "  <-  " << line.source << '\n';
      }
    }
  }

  bool is_refused() const { return is_refused_; }

 private:
  using RuntimeKey = std::pair<std::string, kube::ObjectKey>;  // kind and key

  void print_json() const {
    Json::Array items;
    Json::Array explanations;
    for (const Rendered& item : rendered_) {
      items.push_back(item.object);
      for (const Explanation& line : item.explanations) {
        explanations.push_back(Json::object(
            {{"object", title_of(item.object)}, {"path", line.path}, {"source", line.source}}));
      }
    }
    Json list =
        Json::object({{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json(std::move(items))}});
    if (options_.is_explained) list.set("explanations", Json(std::move(explanations)));
    console_.out << kube::print_json_pretty(list) << '\n';
  }

  void print_later(Json object, std::vector<Explanation> explanations = {}) {
    drop_unknown_owners(object);
    rendered_.push_back({std::move(object), std::move(explanations)});
  }

  void refuse(const Json& object, std::string_view why) {
    console_.err << title_of(object) << ": " << why << '\n';
    is_refused_ = true;
  }
  void refuse(const Json& object, const kube::FieldErrors& errors) {
    for (const kube::FieldError& error : errors) refuse(object, error.to_string());
  }
  // Prints each warning once: admission and the pipeline may both report it.
  void warn(const Json& object, std::string_view what) {
    const std::string line = fmt::format("warning: {}: {}\n", title_of(object), what);
    if (warned_.insert(line).second) console_.err << line;
  }
  bool refuse_unless_allowed(const Json& object, const AdmissionAnswer& answer) {
    for (const std::string& warning : answer.warnings) warn(object, warning);
    if (!answer.is_allowed) refuse(object, answer.message);
    return answer.is_allowed;
  }

  // Another version, or another project's kind of the same name, has other fields.
  bool is_of_version(const Json& object, const std::string& expected) {
    const std::string_view found = object.get_string("apiVersion");
    if (found == expected) return true;
    refuse(object, kube::not_supported("apiVersion", found, {expected}).to_string());
    return false;
  }

  // As the API server does before admission: sets a namespace and the schema's defaults.
  bool prepare(Json& object) {
    const std::string_view kind = object.get_string("kind");
    Json& metadata = object["metadata"];
    if (metadata.is_null()) metadata = Json::object();
    if (!metadata.is_object()) {
      refuse(object, "metadata: must be an object");
      return false;
    }
    if (metadata.get_string("name").empty()) {
      if (metadata.get_string("generateName").empty()) {
        refuse(object, "metadata.name: Required value: give the object a name");
        return false;
      }
      metadata.set("name", std::string(metadata.get_string("generateName")) + "00000");
    }
    if (kind != "ClusterTrainingRuntime" && metadata.get_string("namespace").empty()) {
      metadata.set("namespace", "default");
    }
    apply_schema_defaults(object);
    return true;
  }

  static AdmissionRequest request_of(const Json& object) {
    AdmissionRequest request;
    request.operation = "CREATE";
    request.object = object;
    request.kind = object.get_string("kind");
    request.ns = kube::ObjectMeta::of(object).ns;
    request.name = kube::ObjectMeta::of(object).name;
    return request;
  }

  // Applies the patch of the mutating webhook, then the schema's defaults again and its checks, as
  // the API server does: older fields that the webhook converts are not refused.
  bool mutate(Json& object, const AdmissionAnswer& answer) {
    if (!refuse_unless_allowed(object, answer)) return false;
    auto patched = kube::apply_json_patch(object, answer.json_patch);
    if (!patched) {
      refuse(object, patched.error().message);
      return false;
    }
    object = std::move(*patched);
    apply_schema_defaults(object);
    const kube::FieldErrors errors = check_schema(object);
    refuse(object, errors);
    return errors.empty();
  }

  void add_runtime(Json object) {
    const auto meta = kube::ObjectMeta::of(object);
    const RuntimeKey key{std::string(object.get_string("kind")), meta.key()};
    apply_schema_defaults(object);
    runtimes_[key] = std::make_shared<const Json>(std::move(object));
  }

  std::shared_ptr<const Json> find_runtime(const std::string& kind, const std::string& ns,
                                           const std::string& name) const {
    const auto at = runtimes_.find({kind, {kind == "TrainingRuntime" ? ns : std::string(), name}});
    return at == runtimes_.end() ? nullptr : at->second;
  }

  // Offline there is no cluster to ask: claims and priority classes count as existing.
  AdmissionLookups lookups() const {
    AdmissionLookups lookups;
    lookups.runtime = [this](const std::string& kind, const std::string& ns,
                             const std::string& name) { return find_runtime(kind, ns, name); };
    lookups.jobset = [](const std::string&, const std::string&) { return nullptr; };
    lookups.snapshot = [](const std::string&, const std::string&) { return nullptr; };
    lookups.priority_class_exists = [](const std::string&) { return true; };
    lookups.claim = [](const std::string&, const std::string&) { return std::nullopt; };
    return lookups;
  }

  void render_trainjob(Json object) {
    if (!prepare(object)) return;
    if (!mutate(object, mutate_trainjob(request_of(object), kube::SystemClock().now()))) return;
    if (!refuse_unless_allowed(
            object, validate_trainjob(request_of(object), lookups(), production_plugins())))
      return;
    const auto job = read_trainjob(object);
    if (!job) return refuse(object, job.error());
    const RuntimeRef& ref = job->spec.runtimeRef;
    const auto stored =
        find_runtime(ref.kind.value_or("ClusterTrainingRuntime"), job->metadata.ns, ref.name);
    if (!stored)
      return refuse(object, "spec.runtimeRef: the runtime is neither in the files nor a blueprint");
    const auto runtime = read_runtime(*stored);
    if (!runtime) return refuse(*stored, runtime.error());

    std::vector<Explanation> explanations;
    auto built = build(*job, *runtime, pipeline_, options_.is_explained ? &explanations : nullptr);
    if (!built) return refuse(object, built.error());
    for (const std::string& warning : built->warnings) warn(object, warning);
    apply_schema_defaults(built->jobset);
    const Json jobset = built->jobset;
    print_later(std::move(built->jobset), merged(std::move(explanations)));
    for (DependentObject& dependent : built->dependents) print_later(std::move(dependent.object));
    if (options_.has_jobs) expand(jobset, production_job_decorators());
  }

  void render_jobset(Json object) {
    if (!prepare(object)) return;
    if (!mutate(object, mutate_jobset(request_of(object)))) return;
    if (!refuse_unless_allowed(object,
                               validate_jobset(request_of(object), lookups(), jobset_gates_)))
      return;
    print_later(object);
    if (options_.has_jobs) expand(object, {});
  }

  void expand(const Json& object, jobset::JobDecorators decorators) {
    const auto jobset = read_jobset(object);
    if (!jobset) return refuse(object, jobset.error());
    if (auto service = jobset::headless_service(*jobset)) print_later(std::move(*service));
    for (Json& job : jobset::all_jobs(*jobset, jobset_gates_, decorators)) {
      print_later(std::move(job));
    }
  }

  const RenderOptions& options_;
  Console& console_;
  jobset::Gates jobset_gates_;
  PipelineOptions pipeline_{production_plugins()};
  std::map<RuntimeKey, std::shared_ptr<const Json>> runtimes_;
  std::vector<Json> jobs_;
  std::vector<Json> jobsets_;
  std::vector<Rendered> rendered_;
  std::set<std::string> warned_;
  bool is_refused_ = false;
};

}  // namespace

int run_render(const RenderOptions& options, Console& console) {
  const auto settings = parse_gate_flag(options.feature_gates);
  const auto gates = settings ? resolve_gates({}, *settings) : tl::unexpected(settings.error());
  if (!gates) {
    console.err << gates.error().message << '\n';
    return kExitUsage;
  }
  Renderer renderer(options, *gates, console);
  for (const std::string& file : options.files) {
    auto documents = read_documents(file, console.in);
    if (!documents) {
      console.err << documents.error().message << '\n';
      return kExitRefused;
    }
    for (Json& document : *documents) renderer.add(std::move(document));
  }
  renderer.render_all();
  renderer.print();
  return renderer.is_refused() ? kExitRefused : kExitDone;
}

}  // namespace trainer
