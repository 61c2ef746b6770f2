// A cluster and the pods of a job are described in YAML, and planned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "runtimes/fit/plan_fit.hh"
#include "tests/support/catch.hh"

template <>
struct Catch::StringMaker<kube::Json> {
  static std::string convert(const kube::Json& value) { return kube::print_json(value); }
};

namespace trainer::fit::test {

kube::Json yaml(std::string_view text);
// Members of `more` replace those of `object`, as a merge patch does.
kube::Json with(kube::Json object, std::string_view more);

// A Job "NAME" in namespace "ns" with so many pods; `pod` is merged into the template.
kube::Json job(const std::string& name, int pods, std::string_view pod = "{}");
// The template of a pod with these requests, in YAML flow.
std::string asks(std::string_view requests);

class TestCluster {
 public:
  // A node with 8 CPUs, 16Gi, 4 devices nvidia.com/gpu and 110 pods; labelled with its name as
  // kubernetes.io/hostname.
  TestCluster& node(const std::string& name, std::string_view more = "{}");
  // A pod that runs there, in namespace "ns".
  TestCluster& pod(const std::string& name, const std::string& node, std::string_view more = "{}");
  TestCluster& quota(std::string_view object);

  Snapshot snapshot(const Asked& asked) const;
  PlanAnswer plan(const std::vector<kube::Json>& objects) const;
  // The verdict's name and, if there is one, the rule that decided: "waits NodeResourcesFit".
  std::string verdict(const std::vector<kube::Json>& objects) const;

 private:
  std::vector<kube::Json> nodes_;
  std::vector<kube::Json> pods_;
  std::vector<kube::Json> quotas_;
};

}  // namespace trainer::fit::test
