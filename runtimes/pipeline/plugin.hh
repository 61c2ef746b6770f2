// This interface says what a plugin may do, and when.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// A plugin knows one machine learning framework, gang scheduler or service. Its hooks run only for
// drafts with which it is active, unless they say otherwise. A hook that a plugin does not define
// does nothing. Plugins hold no state: all results are in the draft. Errors about parts that cannot
// be built go into `draft.errors`.
class Plugin {
 public:
  virtual ~Plugin() = default;
  // Returns the name in explanations: "plugin torch".
  virtual std::string_view source() const = 0;
  // Returns whether the job, its runtime or the options ask for the plugin. It is called once, with
  // a prepared draft.
  virtual bool is_active(const Draft&) const = 0;

  // Returns the ML policy of this plugin for a job whose runtime has no policy, or one without a
  // framework; nullptr if the plugin has none for it. numNodes has been counted at that time. It is
  // also called if is_active() is false; the result outlives the draft.
  virtual const MlPolicy* implied_ml_policy(const Draft&) const { return nullptr; }

  // Returns the variables by which the nodes of a job of such a runtime find each other, for
  // messages: "PET_*"; "" if this plugin sets none.
  virtual std::string_view variables_of_nodes(const MlPolicy&) const { return {}; }

  // These are the phases of build(). Each is run for all plugins before the next one begins.
  virtual void enforce_ml_policy(Draft&) const {}  // the framework's counts, env, ports and volumes
  virtual void enforce_pod_spec(Draft&) const {}   // the job's own settings of its containers
  // Gangs are made here: counts and requests no longer change.
  virtual void enforce_pod_group_policy(Draft&) const {}
  virtual void add_dependents(Draft&) const {}  // the objects beside the JobSet

  // Adds those of add_dependents() that are kept up to date while pods of the stored JobSet run,
  // since the kubelet brings a changed ConfigMap to them. Nothing is built then, so every plugin is
  // called.
  virtual void refresh_dependents(const TrainJob&, const kube::Json& /*jobset*/,
                                  const PipelineOptions&, std::vector<DependentObject>&) const {}

  // These are called in admission. The draft is prepared (patches, counts and resources merged),
  // and no phase has run.
  virtual void validate(const Draft&, kube::FieldErrors&) const {}
  virtual void warn(const Draft&, std::vector<std::string>&) const {}
  // It is called instead of warn() if is_active() is false, and reports the job's settings for this
  // plugin that have no effect.
  virtual void warn_inactive(const Draft&, std::vector<std::string>&) const {}

  // It is called in admission of a runtime, or of a job of it before there is a draft. Every plugin
  // is called.
  virtual void warn_runtime(const Runtime&, std::vector<std::string>&) const {}
  // Returns the PriorityClasses without which a job of the runtime is refused.
  virtual std::vector<std::string> priority_classes(const Runtime&) const { return {}; }
};

std::vector<const Plugin*> active_plugins(const Draft& draft);

// Runs phases 1 to 3: patches are merged into the template, pods counted, resources merged.
// Problems are in `errors`. `stored` is the draft's.
Draft prepare(const TrainJob& job, const Runtime& runtime, const PipelineOptions& options,
              Journal journal, const kube::Json* stored = nullptr);

// The warnings name values that plugins set instead of the runtime's, in every job of it. Runtimes
// of very many jobs are skipped.
std::vector<std::string> warn_about_plugins(const Runtime& runtime, const PipelineOptions& options);

}  // namespace trainer::pipeline
