// An installation needs these: `trainer crds` and `trainer rbac`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "controller/cli/apply.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/kinds/registry.hh"
#include "controller/registration/cluster_role.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

constexpr const char* kNamespaced = "namespaced";
// Helm looks for this annotation before it deletes an object of a release. Every job of the cluster
// depends on the CRDs, which a release of upstream's chart contains.
constexpr const char* kHelmPolicy = "helm.sh/resource-policy";

std::string name_of(const kube::Json& object) {
  return std::string(object.get("metadata").get_string("name"));
}

kube::Task<kube::Result<void>> apply_crds(kube::ApiClient& client, std::vector<kube::Json> crds,
                                          std::vector<std::string> keep, Console& console) {
  for (kube::Json& crd : crds) {
    const std::string name = name_of(crd);
    crd["metadata"]["annotations"].set(kHelmPolicy, "keep");
    const auto applied = co_await apply_crd(client, std::move(crd));
    if (!applied) co_return tl::unexpected(applied.error());
    console.out << "customresourcedefinition.apiextensions.k8s.io/" << name << " applied\n";
  }
  for (const std::string& name : keep) {
    kube::Json patch = kube::Json::object();
    patch["metadata"]["annotations"].set(kHelmPolicy, "keep");
    const auto kept = co_await client.merge_patch(kube::kCustomResourceDefinitions,
                                                  kube::ObjectKey{"", name}, std::move(patch));
    if (!kept && kept.error().code != kube::ErrorCode::kNotFound)
      co_return tl::unexpected(kept.error().at("CustomResourceDefinition " + name));
  }
  co_return kube::Result<void>{};
}

}  // namespace

int run_crds(const CrdsOptions& options, Console& console) {
  Registry registry = full_registry();
  std::set<std::string> known;
  for (const KindRegistration& kind : registry)
    if (!kind.option.empty()) known.insert(kind.option);
  std::set<std::string> wanted(options.installed.begin(), options.installed.end());
  for (const std::string& option : wanted) {
    if (known.contains(option)) continue;
    console.err << fmt::format("option {}: no kind has this name: choose from {}\n", option,
                               fmt::join(known, ", "));
    return kExitRefused;
  }
  if (wanted.empty()) wanted.insert("");
  std::erase_if(registry,
                [&wanted](const KindRegistration& kind) { return !wanted.contains(kind.option); });
  std::vector<kube::Json> crds = custom_resource_definitions(registry);
  for (const std::string& name : options.except) {
    if (std::erase_if(crds, [&name](const auto& crd) { return name_of(crd) == name; }) > 0)
      continue;
    console.err << fmt::format(
        "--except {}: no CustomResourceDefinition has this name: `trainer crds` prints them\n",
        name);
    return kExitRefused;
  }
  if (!options.is_applied) {
    print_documents(crds, OutputFormat::kYaml, console.out);
    return kExitDone;
  }
  return in_cluster(options.cluster, console, [&](kube::ApiClient& client) {
    return apply_crds(client, std::move(crds), options.keep, console);
  });
}

int run_rbac(const std::string& option, Console& console) {
  if (option == kNamespaced) {
    KindOptions namespaced;
    namespaced.configuration.namespaced = true;
    console.out << namespaced_role(production_registry(namespaced));
    return kExitDone;
  }
  const Registry registry = full_registry();
  auto options = cluster_role_options(registry);
  options.emplace_back(kNamespaced);
  if (!option.empty() && std::find(options.begin(), options.end(), option) == options.end()) {
    console.err << fmt::format("option {}: there is none of this name: choose from {}\n", option,
                               fmt::join(options, ", "));
    return kExitRefused;
  }
  console.out << cluster_role(registry, option);
  return kExitDone;
}

}  // namespace trainer
