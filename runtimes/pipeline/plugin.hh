// What a plugin may do, and when.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// A plugin knows one machine learning framework, gang scheduler or service. Its hooks run only for
// drafts with which it is active, but where they say otherwise; a hook that a plugin does not
// define does nothing. Plugins hold no state: all results are in the draft. What cannot be built
// goes into `draft.errors`.
class Plugin {
 public:
  virtual ~Plugin() = default;
  // The name in explanations: "plugin torch".
  virtual std::string_view source() const = 0;
  // Whether the job, its runtime or the options ask for it. Read once, of a prepared draft.
  virtual bool is_active(const Draft&) const = 0;

  // The ML policy that this plugin gives to a job whose runtime has none, or one without a
  // framework, whose numNodes has been counted then; nullptr: it gives none. Called also where
  // is_active() is false; the result outlives the draft.
  virtual const MlPolicy* implied_ml_policy(const Draft&) const { return nullptr; }

  // The variables by which the nodes of a job of such a runtime find each other, for messages:
  // "PET_*"; "" where this plugin gives none.
  virtual std::string_view variables_of_nodes(const MlPolicy&) const { return {}; }

  // Phases of build(), each run for all plugins before the next begins.
  virtual void enforce_ml_policy(Draft&) const {}  // counts, env, ports, volumes of the framework
  virtual void enforce_pod_spec(Draft&) const {}   // what the job itself says about its containers
  // Gangs: counts and requests no longer change.
  virtual void enforce_pod_group_policy(Draft&) const {}
  virtual void add_dependents(Draft&) const {}  // objects beside the JobSet

  // Those of add_dependents() that are kept up to date while pods of the stored JobSet run, since
  // the kubelet brings a changed ConfigMap to them. Nothing is built then, so every plugin is
  // asked.
  virtual void refresh_dependents(const TrainJob&, const kube::Json& /*jobset*/,
                                  const PipelineOptions&, std::vector<DependentObject>&) const {}

  // Admission. The draft is prepared (patches, counts and resources merged), and no phase has run.
  virtual void validate(const Draft&, kube::FieldErrors&) const {}
  virtual void warn(const Draft&, std::vector<std::string>&) const {}
  // In place of warn() where is_active() is false: what the job asks of this plugin without effect.
  virtual void warn_inactive(const Draft&, std::vector<std::string>&) const {}

  // Admission of a runtime, or of a job of it before there is a draft. Asked of every plugin.
  virtual void warn_runtime(const Runtime&, std::vector<std::string>&) const {}
  // The PriorityClasses without which a job of the runtime is refused.
  virtual std::vector<std::string> priority_classes(const Runtime&) const { return {}; }
};

std::vector<const Plugin*> active_plugins(const Draft& draft);

// Phases 1 to 3: patches merged into the template, pods counted, resources merged. Problems are in
// `errors`. `stored` is the draft's.
Draft prepare(const TrainJob& job, const Runtime& runtime, const PipelineOptions& options,
              Journal journal, const kube::Json* stored = nullptr);

// The warnings name what plugins set in the place of what the runtime says, in every job of it.
// Runtimes of very many jobs are passed over.
std::vector<std::string> warn_about_plugins(const Runtime& runtime, const PipelineOptions& options);

}  // namespace trainer::pipeline
