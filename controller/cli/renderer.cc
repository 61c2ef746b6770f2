#include "controller/cli/renderer.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "controller/cli/documents.hh"
#include "kube/client/clock.hh"
#include "kube/model/names.hh"
#include "kube/model/patch.hh"

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

std::string warning_line(std::string_view title, std::string_view what) {
  return fmt::format("warning: {}: {}\n", title, what);
}

AdmissionRequest request_of(const Json& object) {
  const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
  return {.operation = "CREATE",
          .object = object,
          .ns = key.ns,
          .kind = std::string(object.get_string("kind")),
          .name = key.name};
}

}  // namespace

Renderer::Kind::Kind(const KindRegistration& registration, const RenderHook& its) : hook(&its) {
  for (const ApiKind& api : registration.crds) {
    if (!share_crd(api.resource, its.resource)) continue;
    for (const KindVersion& version : api.versions)
      if (version.name == its.resource.version) schema = version.make_schema();
  }
}

void Renderer::Kind::apply_defaults(Json& object) const {
  if (schema) apply_schema_defaults(object, *schema);
}

Renderer::Renderer(const Options& options, Configuration configuration, const Registry& registry,
                   Console& console)
    : console_(console) {
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

void Renderer::add(Json object) {
  Kind* kind = find_kind(object);
  if (kind == nullptr) return;
  if (kind->hook->render) {
    kind->objects.push_back(std::move(object));
  } else if (admit(*kind, object)) {
    keep(*kind, std::move(object));
    is_kept_ = true;
  }
}

void Renderer::render_all(std::string_view what_to_do) {
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
    console_.err << fmt::format("nothing to {}: {}name a file with a {} or {}\n", what_to_do,
                                is_kept_ ? "the runtimes of these files are valid; " : "",
                                fmt::join(names, ", "), last);
    is_refused_ = true;
  }
  for (Kind& kind : kinds_) {
    for (Json& object : kind.objects) {
      if (admit(kind, object)) render(kind, object);
    }
  }
}

// Reports an error, and returns false, so that a function in which true means success can return
// it.
bool Renderer::refuse(const Json& object, std::string_view why) {
  console_.err << title_of(object) << ": " << why << '\n';
  is_refused_ = true;
  return false;
}
void Renderer::refuse(const Json& object, const kube::FieldErrors& errors) {
  for (const kube::FieldError& error : errors) refuse(object, error.to_string());
}
// Prints each warning once: admission and the pipeline may both report it.
void Renderer::warn(const Json& object, std::string_view what) {
  const std::string line = warning_line(title_of(object), what);
  if (warned_.insert(line).second) console_.err << line;
}
bool Renderer::refuse_unless_allowed(const Json& object, const AdmissionAnswer& answer) {
  for (const std::string& warning : answer.warnings) warn(object, warning);
  return answer.is_allowed || refuse(object, answer.message);
}

// Returns nullptr, after a message, for a kind that is not rendered. Another version, or another
// project's kind of the same name, has other fields.
Renderer::Kind* Renderer::find_kind(const Json& object) {
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
bool Renderer::check_metadata(const Json& object) {
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
bool Renderer::prepare(const Kind& kind, Json& object) {
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
bool Renderer::is_known_to(const Kind& kind, const Json& object) {
  if (!kind.schema) return true;
  const std::vector<std::string> unknown = unknown_fields(object, *kind.schema);
  return unknown.empty() ||
         refuse(object, fmt::format("strict decoding error: unknown field \"{}\"",
                                    fmt::join(unknown, "\", unknown field \"")));
}

// Applies the patch of the mutating webhook, then the schema's defaults again and its checks. The
// API server has the same order: older fields that the webhook converts are not refused.
bool Renderer::admit(const Kind& kind, Json& object) {
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

void Renderer::keep(const Kind& kind, Json object) {
  const kube::ObjectKey key = kube::ObjectMeta::of(object).key();
  kind.apply_defaults(object);
  found_[{kind.hook->resource.kind, key}] = std::make_shared<const Json>(std::move(object));
}

void Renderer::render(const Kind& kind, const Json& object) {
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

void Renderer::add_stored(const kube::Resource& resource, Json object) {
  for (const Kind& kind : kinds_)
    if (kind.hook->resource == resource) return keep(kind, std::move(object));
}

std::vector<kube::Resource> Renderer::kinds_not_rendered() const {
  std::vector<kube::Resource> resources;
  for (const Kind& kind : kinds_)
    if (!kind.hook->render) resources.push_back(kind.hook->resource);
  return resources;
}

void Renderer::render_stored(const kube::Resource& resource, Json object) {
  for (const Kind& kind : kinds_) {
    if (!(kind.hook->resource == resource) || !kind.hook->render) continue;
    kind.apply_defaults(object);
    return render(kind, object);
  }
}

}  // namespace trainer
