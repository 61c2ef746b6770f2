// Makes what the controller would create for objects of files, with the same code: schema,
// defaults, admission, pipeline, JobSet controller.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/schema/structural_schema.hh"
#include "controller/cli/console.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/model/field_error.hh"

namespace trainer {

// Errors and warnings are printed as they are found. Concurrency: one thread.
class Renderer {
 public:
  struct Options {
    bool is_explained = false;  // say where each value came from
    bool has_jobs = false;      // expand JobSets into Jobs and Services
  };
  // The registry and the console outlive it.
  Renderer(const Options& options, Configuration configuration, const Registry& registry,
           Console& console);
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // An object of the files wins over one of the cluster, and that one over a built-in one of the
  // same name.
  void add(kube::Json object);
  // Adds an object that the cluster has, of a kind that is not rendered itself, such as a runtime.
  void add_stored(const kube::Resource& resource, kube::Json object);
  // Returns the kinds of such objects.
  std::vector<kube::Resource> kinds_not_rendered() const;

  // Renders what was added. Without any job the message is that there is nothing to render, or
  // whatever else the command does.
  void render_all(std::string_view what_to_do);
  // Renders an object that the cluster has: admission is left out.
  void render_stored(const kube::Resource& resource, kube::Json object);

  const std::vector<RenderedObject>& rendered() const { return rendered_; }
  bool is_refused() const { return is_refused_; }

 private:
  // This is a kind that is rendered, with the objects of the files that wait for their turn.
  struct Kind {
    const RenderHook* hook = nullptr;
    std::optional<wire::Schema> schema;
    std::vector<kube::Json> objects;

    Kind(const KindRegistration& registration, const RenderHook& its);
    void apply_defaults(kube::Json& object) const;
  };

  bool refuse(const kube::Json& object, std::string_view why);
  void refuse(const kube::Json& object, const kube::FieldErrors& errors);
  void warn(const kube::Json& object, std::string_view what);
  bool refuse_unless_allowed(const kube::Json& object, const AdmissionAnswer& answer);
  Kind* find_kind(const kube::Json& object);
  bool check_metadata(const kube::Json& object);
  bool prepare(const Kind& kind, kube::Json& object);
  bool is_known_to(const Kind& kind, const kube::Json& object);
  bool admit(const Kind& kind, kube::Json& object);
  void keep(const Kind& kind, kube::Json object);
  void render(const Kind& kind, const kube::Json& object);

  Console& console_;
  RenderInputs inputs_;
  std::vector<Kind> kinds_;  // in the order of their output
  std::map<std::pair<std::string, kube::ObjectKey>, std::shared_ptr<const kube::Json>> found_;
  std::vector<RenderedObject> rendered_;
  std::set<std::string> warned_;
  bool is_refused_ = false;
  bool is_kept_ = false;  // an object of the files that is not printed itself
};

}  // namespace trainer
