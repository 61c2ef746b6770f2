#include "api/api.hh"
#include "api/schema/kubernetes_types.hh"

namespace trainer {
namespace {

kube::MergeKeys make_jobset_merge_keys() {
  // This is the only list of the JobSet itself that a patch can change.
  std::map<std::string, std::string, std::less<>> keys{{"replicatedJobs", "name"}};
  const kube::Json types = read_kubernetes_types();
  const kube::Json* below_template = types.find_path({"mergeKeys", "JobTemplateSpec"});
  for (const auto& [path, key] : below_template->as_object())
    keys.emplace("replicatedJobs.template." + path, key.as_string());
  return kube::MergeKeys(std::move(keys));
}

}  // namespace

const kube::MergeKeys& jobset_merge_keys() {
  static const kube::MergeKeys keys = make_jobset_merge_keys();
  return keys;
}

}  // namespace trainer
