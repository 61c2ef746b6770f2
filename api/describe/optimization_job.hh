// The shape of trainer.kubeflow.org/v1alpha1 OptimizationJob. Only its schema is served: nothing
// acts on these objects yet, so the structs are described and never filled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/describe/attributes.hh"
#include "api/describe/trainjob.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct Objective {
  std::string metric;
  std::optional<std::string> direction;

  template <class D>
  static void describe(D& d) {
    d.required("metric", &Objective::metric)
        .min_length(1)
        .max_length(64)
        .doc("The name under which the training code reports the metric.");
    d.field("direction", &Objective::direction)
        .one_of({"Maximize", "Minimize"})
        .defaults_to("Minimize")
        .doc("Whether more or less of it is better.");
  }
};

struct RandomSearch {
  std::optional<std::int64_t> seed;

  template <class D>
  static void describe(D& d) {
    d.field("seed", &RandomSearch::seed).doc("Makes the choices repeatable.");
  }
};

struct GridSearch {
  template <class D>
  static void describe(D&) {}
};

struct SearchAlgorithm {
  std::optional<RandomSearch> random;
  std::optional<GridSearch> grid;

  template <class D>
  static void describe(D& d) {
    d.self().rule({"[has(self.random),has(self.grid)].filter(x,x==true).size() == 1",
                   "exactly one of the fields in [random grid] must be set"});
    d.field("random", &SearchAlgorithm::random).doc("Draws every value at random.");
    d.field("grid", &SearchAlgorithm::grid).doc("Tries every combination.");
  }
};

// The members of uniform and logUniform.
template <bool kIsLogarithmic>
struct Range {
  std::string min;
  std::string max;
  std::optional<std::string> type;

  template <class D>
  static void describe(D& d) {
    d.self().rule({"double(self.min) < double(self.max)", "min must be strictly less than max"});
    if constexpr (kIsLogarithmic)
      d.self().rule({"double(self.min) > 0.0", "min must be strictly greater than 0"});
    d.required("min", &Range::min)
        .min_length(1)
        .max_length(64)
        .pattern(wire::kJsonNumber)
        .doc("The least value.");
    d.required("max", &Range::max)
        .min_length(1)
        .max_length(64)
        .pattern(wire::kJsonNumber)
        .doc("The greatest value.");
    d.field("type", &Range::type)
        .one_of({"Int", "Float"})
        .defaults_to("Float")
        .doc("Whether values are whole numbers.");
  }
};

struct Choices {
  std::vector<std::string> choices;

  template <class D>
  static void describe(D& d) {
    d.required("choices", &Choices::choices)
        .list_set()
        .min_items(1)
        .max_items(100)
        .item_max_length(64)
        .doc("The values to choose from.");
  }
};

struct SearchSpace {
  std::optional<Range<false>> uniform;
  std::optional<Range<true>> logUniform;
  std::optional<Choices> categorical;

  template <class D>
  static void describe(D& d) {
    d.self().rule(
        {"[has(self.uniform),has(self.logUniform),has(self.categorical)].filter(x,x==true).size() "
         "== 1",
         "exactly one of the fields in [uniform logUniform categorical] must be set"});
    d.field("uniform", &SearchSpace::uniform).doc("All values are equally likely.");
    d.field("logUniform", &SearchSpace::logUniform)
        .doc("All orders of magnitude are equally likely.");
    d.field("categorical", &SearchSpace::categorical).doc("One of a list.");
  }
};

struct Parameter {
  std::string name;
  SearchSpace searchSpace;

  template <class D>
  static void describe(D& d) {
    d.required("name", &Parameter::name).min_length(1).max_length(64).doc("The parameter's name.");
    d.required("searchSpace", &Parameter::searchSpace).doc("The values it may take.");
  }
};

struct TrainJobTemplate {
  std::optional<kube::Json> metadata;
  TrainJobSpec spec;

  template <class D>
  static void describe(D& d) {
    d.field("metadata", &TrainJobTemplate::metadata)
        .kubernetes("ObjectMeta")
        .rule({"!has(self.name) && !has(self.__namespace__)",
               "name and namespace cannot be set in a template."})
        .doc("Labels and annotations of every trial.");
    d.field("spec", &TrainJobTemplate::spec).doc("The TrainJob of every trial.");
  }
};

struct OptimizationJobSpec {
  std::vector<Objective> objectives;
  std::optional<SearchAlgorithm> searchAlgorithm;
  std::vector<Parameter> parameters;
  std::optional<std::int32_t> numTrials;
  std::optional<std::int32_t> parallelTrials;
  TrainJobTemplate trainJobTemplate;

  template <class D>
  static void describe(D& d) {
    using S = OptimizationJobSpec;
    d.self()
        .immutable("OptimizationJobSpec is immutable and cannot be updated after creation")
        .rule({"self.parallelTrials <= self.numTrials", "parallelTrials cannot exceed numTrials"})
        .rule({"!has(self.searchAlgorithm.grid) || self.parameters.all(p, "
               "has(p.searchSpace.categorical))",
               "Grid search requires all parameters to be Categorical; Uniform and LogUniform are "
               "not "
               "supported."});
    d.required("objectives", &S::objectives)
        .list_map("metric")
        .min_items(1)
        .max_items(1)
        .doc("What is optimized.");
    d.field("searchAlgorithm", &S::searchAlgorithm)
        .defaults_to(kube::Json::object({{"random", kube::Json::object()}}))
        .doc("How values are chosen.");
    d.required("parameters", &S::parameters)
        .list_map("name")
        .min_items(1)
        .max_items(100)
        .doc("What is varied.");
    d.field("numTrials", &S::numTrials)
        .minimum(1)
        .maximum(100)
        .defaults_to(1)
        .doc("How many trials there are.");
    d.field("parallelTrials", &S::parallelTrials)
        .minimum(1)
        .maximum(100)
        .defaults_to(1)
        .doc("How many of them run at a time.");
    d.required("trainJobTemplate", &S::trainJobTemplate).doc("What every trial is made from.");
  }
};

struct ParameterValue {
  std::string name;
  std::string value;

  template <class D>
  static void describe(D& d) {
    d.required("name", &ParameterValue::name).min_length(1).max_length(64).doc("The parameter.");
    d.required("value", &ParameterValue::value)
        .min_length(1)
        .max_length(64)
        .doc("Its value, as text.");
  }
};

struct OptimizationResult {
  std::string trainJobName;
  std::vector<ParameterValue> parameters;

  template <class D>
  static void describe(D& d) {
    d.required("trainJobName", &OptimizationResult::trainJobName)
        .min_length(1)
        .max_length(63)
        .doc("The best trial.");
    d.field("parameters", &OptimizationResult::parameters)
        .list_map("name")
        .max_items(100)
        .doc("Its parameters.");
  }
};

struct OptimizationJobStatus {
  std::vector<kube::Condition> conditions;
  std::optional<OptimizationResult> result;

  template <class D>
  static void describe(D& d) {
    d.field("conditions", &OptimizationJobStatus::conditions)
        .list_map("type")
        .max_items(100)
        .doc("How far the search is.");
    d.field("result", &OptimizationJobStatus::result).doc("What came out best.");
  }
};

struct OptimizationJob {
  kube::ObjectMeta metadata;
  OptimizationJobSpec spec;
  OptimizationJobStatus status;

  template <class D>
  static void describe(D& d) {
    d.self().doc("A search for the best parameters of a TrainJob. Nothing reconciles it yet.");
    d.field("metadata", &OptimizationJob::metadata);
    d.required("spec", &OptimizationJob::spec).doc("What shall be optimized.");
    d.field("status", &OptimizationJob::status).doc("What is seen of it.");
  }
};

}  // namespace trainer
