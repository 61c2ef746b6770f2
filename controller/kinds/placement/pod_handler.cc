#include "controller/kinds/placement/pod_handler.hh"

#include <optional>
#include <string>
#include <vector>

#include "controller/kinds/placement/node_labels.hh"
#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

// A review's facts are those that have been read so far and those that the rules still need. The
// rules are pure and cannot wait for a read, so they are evaluated again after each read. A pod
// needs at most one leader and one node.
class PodHandler::Facts {
 public:
  jobset::PlacementLookups lookups() {
    jobset::PlacementLookups lookups;
    lookups.leaders = [this](const std::string&, const std::string& base_name) {
      if (!leaders) wanted_leader = base_name;
      return leaders.value_or(std::vector<jobset::LeaderPod>());
    };
    lookups.node_labels = [this](const std::string& node) -> std::optional<kube::StringMap> {
      if (!is_node_known) wanted_node = node;
      return node_labels;
    };
    return lookups;
  }

  std::optional<std::string> wanted_leader;
  std::optional<std::vector<jobset::LeaderPod>> leaders;
  std::optional<std::string> wanted_node;
  bool is_node_known = false;
  std::optional<kube::StringMap> node_labels;
};

Task<Result<AdmissionAnswer>> PodHandler::mutate(AdmissionRequest request) {
  return evaluate(mutate_pod, std::move(request));
}

Task<Result<AdmissionAnswer>> PodHandler::validate(AdmissionRequest request) {
  return evaluate(validate_pod, std::move(request));
}

Task<Result<AdmissionAnswer>> PodHandler::evaluate(Rules rules, AdmissionRequest request) {
  Facts facts;
  while (true) {
    AdmissionAnswer answer = rules(request, facts.lookups());
    if (facts.wanted_leader) {
      auto read = co_await list_leaders(request, facts);
      if (!read) co_return tl::unexpected(read.error());
    } else if (facts.wanted_node) {
      auto read = co_await read_node(facts);
      if (!read) co_return tl::unexpected(read.error());
    } else {
      co_return answer;
    }
  }
}

Task<Result<void>> PodHandler::list_leaders(const AdmissionRequest& request, Facts& facts) {
  const std::string base_name = *facts.wanted_leader;
  facts.wanted_leader.reset();
  std::vector<jobset::LeaderPod> found;
  // No pod has labels that the API server refuses.
  if (const auto selector = jobset::leader_selector(request.object)) {
    std::function<void(std::string_view)> on_item = [&found, &base_name](std::string_view text) {
      const auto pod = kube::parse_json(text, kube::kObjectLimits, jobset::read_of_listed_pods());
      auto leader = pod ? jobset::read_leader(*pod, base_name) : std::nullopt;
      if (leader) found.push_back(std::move(*leader));
    };
    std::string query = "labelSelector=" + kube::percent_encode(*selector);
    const auto listed =
        co_await client_.list(kube::kPods, request.ns, std::move(query), std::move(on_item));
    if (!listed) co_return tl::unexpected(listed.error().at("leader pod " + base_name));
  }
  facts.leaders = std::move(found);
  co_return Result<void>();
}

Task<Result<void>> PodHandler::read_node(Facts& facts) {
  std::string node = *facts.wanted_node;
  facts.wanted_node.reset();
  auto labels = co_await read_node_labels(client_, std::move(node));
  if (!labels) co_return tl::unexpected(labels.error());
  facts.node_labels = std::move(*labels);
  facts.is_node_known = true;
  co_return Result<void>();
}

}  // namespace trainer
