// `render` prints what the controller would create, from files alone and with the same code:
// schema, defaults, admission, pipeline, JobSet controller.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>

#include "api/schema/structural_schema.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "kube/client/clock.hh"
#include "kube/model/json_text.hh"
#include "kube/model/names.hh"
#include "kube/model/patch.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::Json;

// There is one line for each path, with all sources of a value in order: the last one is effective.
std::vector<Explanation> merged(std::vector<Explanation> explanations) {
  std::vector<Explanation> lines;
  struct Line {
    std::size_t index;
    std::string last;  // a source that sets a value twice is named once
  };
  std::map<std::string, Line> line_of;
  for (Explanation& item : explanations) {
    const auto [at, is_new] = line_of.emplace(item.path, Line{lines.size(), item.source});
    if (is_new) {
      lines.push_back(std::move(item));
    } else if (at->second.last != item.source) {
      lines[at->second.index].source += ", then " + item.source;
      at->second.last = std::move(item.source);
    }
  }
  return lines;
}

// Otherwise the text behind a line feed would be no comment.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

// Offline, objects have no uid, and the API server refuses owner references without one.
void drop_unknown_owners(Json& object) {
  Json* metadata = object.find("metadata");
  if (metadata == nullptr) return;
  const Json::Array& owners = metadata->get_array("ownerReferences");
  const auto is_unknown = [](const Json& owner) { return owner.get_string("uid").empty(); };
  if (std::any_of(owners.begin(), owners.end(), is_unknown)) metadata->erase("ownerReferences");
}

// Old guides have jobs of this kind.
bool is_removed(const Json& object) {
  return object.get_string("kind") == "MXJob" &&
         object.get_string("apiVersion").starts_with("kubeflow.org/");
}

// This is a kind that is rendered, with the objects of the files that wait for their turn.
struct Kind {
  const RenderHook* hook = nullptr;
  std::optional<wire::Schema> schema;
  std::vector<Json> objects;

  Kind(const KindRegistration& registration, const RenderHook& its) : hook(&its) {
    for (const ApiKind& api : registration.crds) {
      if (!share_crd(api.resource, its.resource)) continue;
      for (const KindVersion& version : api.versions)
        if (version.name == its.resource.version) schema = version.make_schema();
    }
  }
  void apply_defaults(Json& object) const {
    if (schema) apply_schema_defaults(object, *schema);
  }
};

class Renderer {
 public:
  Renderer(const RenderOptions& options, Configuration configuration, const Registry& registry,
           Console& console)
      : options_(options), console_(console) {
    inputs_.configuration = std::move(configuration);
    inputs_.is_explained = options.is_explained;
    inputs_.has_jobs = options.has_jobs;
    inputs_.now = kube::SystemClock().now();
    inputs_.find = [this](const kube::Resource& resource, const kube::ObjectKey& key) {
      const auto at = found_.find({resource.kind, key});
      return at == found_.end() ? nullptr : at->second;
    };
    inputs_.is_warned = [this](const kube::Resource& resource, const kube::ObjectKey& key,
                               const std::string& warning) {
      return warned_.contains(warning_line(resource.kind + " " + key.to_string(), warning));
    };
    for (const KindRegistration& registration : registry) {
      for (const RenderHook& hook : registration.render) {
        const Kind& kind = kinds_.emplace_back(registration, hook);
        if (hook.builtin == nullptr) continue;
        for (Json& object : hook.builtin()) keep(kind, std::move(object));
      }
    }
  }

  // An object of the files wins over a built-in one of the same name.
  void add(Json object) {
    Kind* kind = find_kind(object);
    if (kind == nullptr) return;
    if (kind->hook->render) {
      kind->objects.push_back(std::move(object));
    } else if (admit(*kind, object)) {
      keep(*kind, std::move(object));
      is_kept_ = true;
    }
  }

  void render_all() {
    std::vector<std::string> names;
    bool has_objects = false;
    for (const Kind& kind : kinds_) {
      const std::string& name = kind.hook->resource.kind;
      if (kind.hook->render && std::ranges::find(names, name) == names.end()) names.push_back(name);
      has_objects |= !kind.objects.empty();
    }
    if (!has_objects && !is_refused_) {
      const std::string last = names.back();
      names.pop_back();
      console_.err << fmt::format("nothing to render: {}name a file with a {} or {}\n",
                                  is_kept_ ? "the runtimes of these files are valid; " : "",
                                  fmt::join(names, ", "), last);
      is_refused_ = true;
    }
    for (Kind& kind : kinds_) {
      for (Json& object : kind.objects) render(kind, std::move(object));
    }
  }

  void print() const {
    if (options_.format == OutputFormat::kJson) return print_json();
    const char* separator = "";
    for (const RenderedObject& item : rendered_) {
      console_.out << std::exchange(separator, "---\n") << kube::print_visible_yaml(item.object);
      if (item.explanations.empty()) continue;
      console_.out << "# Where the values above come from:\n";
      for (const Explanation& line : item.explanations) {
        console_.out << "#   " << on_one_line(line.path) << "  <-  " << on_one_line(line.source)
                     << '\n';
      }
    }
  }

  bool is_refused() const { return is_refused_; }

 private:
  void print_json() const {
    Json::Array items;
    Json::Array explanations;
    for (const RenderedObject& item : rendered_) {
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

  // Reports an error, and returns false, so that a function in which true means success can return
  // it.
  bool refuse(const Json& object, std::string_view why) {
    console_.err << title_of(object) << ": " << why << '\n';
    is_refused_ = true;
    return false;
  }
  void refuse(const Json& object, const kube::FieldErrors& errors) {
    for (const kube::FieldError& error : errors) refuse(object, error.to_string());
  }
  static std::string warning_line(std::string_view title, std::string_view what) {
    return fmt::format("warning: {}: {}\n", title, what);
  }
  // Prints each warning once: admission and the pipeline may both report it.
  void warn(const Json& object, std::string_view what) {
    const std::string line = warning_line(title_of(object), what);
    if (warned_.insert(line).second) console_.err << line;
  }
  bool refuse_unless_allowed(const Json& object, const AdmissionAnswer& answer) {
    for (const std::string& warning : answer.warnings) warn(object, warning);
    return answer.is_allowed || refuse(object, answer.message);
  }

  // Returns nullptr, after a message, for a kind that is not rendered. Another version, or another
  // project's kind of the same name, has other fields.
  Kind* find_kind(const Json& object) {
    const std::string_view found = object.get_string("apiVersion");
    std::vector<std::string> known;
    for (Kind& kind : kinds_) {
      if (kind.hook->resource.kind != object.get_string("kind")) continue;
      known.push_back(kind.hook->resource.api_version());
      if (known.back() == found) return &kind;
    }
    if (known.empty() && is_removed(object)) {
      refuse(object,
             "the Training Operator 1.9 removed this kind, and nothing reconciles it: make a "
             "PyTorchJob (kubeflow.org/v1) or a TrainJob (trainer.kubeflow.org/v1alpha1) of it");
    } else if (known.empty()) {
      warn(object, "this kind is not rendered: it is left out");
    } else {
      const std::vector<std::string_view> supported(known.begin(), known.end());
      refuse(object, {kube::not_supported("apiVersion", found, supported)});
    }
    return nullptr;
  }

  // Checks the metadata rules of every kind, and that a name such as in `name: 1` is a string.
  bool check_metadata(const Json& object) {
    const Json& metadata = object.get("metadata");
    kube::FieldErrors errors;
    for (const char* member : {"name", "generateName", "namespace"}) {
      const Json& value = metadata.get(member);
      if (value.is_null() || value.is_string()) continue;
      errors.push_back(kube::invalid(kube::join_field("metadata", member), value,
                                     "must be of type string, found {}: write it in quotes",
                                     value.type_name()));
    }
    const std::string_view ns = metadata.get_string("namespace");
    if (const std::string problem = kube::check_dns1123_label(ns); !ns.empty() && !problem.empty())
      errors.push_back(kube::invalid("metadata.namespace", ns, problem));
    const std::string_view name = metadata.get_string("name");
    const std::string problem = kube::check_dns1123_subdomain(name);
    if (!name.empty() && !problem.empty())
      errors.push_back(kube::invalid("metadata.name", name, problem));
    kube::check_labels_and_annotations(metadata, "metadata", errors);
    refuse(object, errors);
    return errors.empty();
  }

  // Does what the API server does before admission: sets a namespace and the schema's defaults.
  bool prepare(const Kind& kind, Json& object) {
    Json& metadata = object["metadata"];
    if (metadata.is_null()) metadata = Json::object();
    if (!metadata.is_object()) return refuse(object, "metadata: must be an object");
    if (!kind.hook->resource.namespaced)
      metadata.erase("namespace");  // the API server does so
    else if (const Json& ns = metadata.get("namespace"); ns.is_null() || ns == Json(""))
      metadata.set("namespace", "default");
    if (!check_metadata(object)) return false;
    if (metadata.get_string("name").empty()) {
      const std::string prefix(metadata.get_string("generateName"));
      if (prefix.empty())
        return refuse(object, "metadata.name: Required value: give the object a name");
      metadata.set("name", prefix + "00000");
    }
    kind.apply_defaults(object);
    return true;
  }

  // Checks like `kubectl apply --validate=strict`, with the API server's words.
  bool is_known_to(const Kind& kind, const Json& object) {
    if (!kind.schema) return true;
    const std::vector<std::string> unknown = unknown_fields(object, *kind.schema);
    return unknown.empty() ||
           refuse(object, fmt::format("strict decoding error: unknown field \"{}\"",
                                      fmt::join(unknown, "\", unknown field \"")));
  }

  static AdmissionRequest request_of(const Json& object) {
    const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
    return {.operation = "CREATE",
            .object = object,
            .ns = key.ns,
            .kind = std::string(object.get_string("kind")),
            .name = key.name};
  }

  // Applies the patch of the mutating webhook, then the schema's defaults again and its checks. The
  // API server has the same order: older fields that the webhook converts are not refused.
  bool admit(const Kind& kind, Json& object) {
    if (!prepare(kind, object) || !is_known_to(kind, object)) return false;
    const RenderHook& hook = *kind.hook;
    if (hook.mutate) {
      const AdmissionAnswer answer = hook.mutate(request_of(object), inputs_);
      if (!refuse_unless_allowed(object, answer)) return false;
      auto patched = kube::apply_json_patch(object, answer.json_patch);
      if (!patched) return refuse(object, patched.error().message);
      object = std::move(*patched);
      kind.apply_defaults(object);
      // The schema of older fields is open, so it has refused nothing below them. The converted
      // fields may not be in the schema, and no cluster would keep those.
      if (!is_known_to(kind, object)) return false;
    }
    if (kind.schema) {
      const kube::FieldErrors errors = check_schema(object, *kind.schema);
      refuse(object, errors);
      if (!errors.empty()) return false;
    }
    return !hook.validate ||
           refuse_unless_allowed(object, hook.validate(request_of(object), inputs_));
  }

  void keep(const Kind& kind, Json object) {
    const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
    kind.apply_defaults(object);
    found_[{kind.hook->resource.kind, key}] = std::make_shared<const Json>(std::move(object));
  }

  void render(const Kind& kind, Json object) {
    if (!admit(kind, object)) return;
    auto rendered = kind.hook->render(object, inputs_);
    if (!rendered) return refuse(object, rendered.error());
    for (const std::string& warning : rendered->warnings) warn(object, warning);
    refuse(object, rendered->errors);
    for (RenderedObject& item : rendered->objects) {
      drop_unknown_owners(item.object);
      item.explanations = merged(std::move(item.explanations));
      rendered_.push_back(std::move(item));
    }
  }

  const RenderOptions& options_;
  Console& console_;
  RenderInputs inputs_;
  std::vector<Kind> kinds_;  // in the order of their output
  std::map<std::pair<std::string, kube::ObjectKey>, std::shared_ptr<const Json>> found_;
  std::vector<RenderedObject> rendered_;
  std::set<std::string> warned_;
  bool is_refused_ = false;
  bool is_kept_ = false;  // an object of the files that is not printed itself
};

// The files that the configuration names are for the controller, and are not read.
kube::Result<ParsedConfiguration> read_settings(const RenderOptions& options) {
  std::ostringstream text;
  if (!options.config_file.empty()) {
    std::ifstream file(options.config_file, std::ios::binary);
    text << file.rdbuf();
    if (!file)
      return kube::fail(kube::ErrorCode::kInvalid, "--config {}: the file cannot be read",
                        options.config_file);
  }
  return parse_configuration(text.str(), options.feature_gates);
}

}  // namespace

int run_render(const RenderOptions& options, const Registry& registry, Console& console) {
  auto settings = read_settings(options);
  if (!settings) {
    console.err << settings.error().message << '\n';
    return kExitUsage;
  }
  for (std::string& warning : concurrency_warnings(settings->configuration, registry))
    settings->warnings.push_back(std::move(warning));
  for (const std::string& warning : settings->warnings)
    console.err << "warning: " << warning << '\n';
  Renderer renderer(options, std::move(settings->configuration), registry, console);
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
