#include "controller/cli/local_objects.hh"

#include <set>

#include "api/trainjob.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/local_jobs.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::Result;

// Returns what to do with a document of a kind that local mode does not have.
std::string_view advice_about(const Json& document) {
  constexpr std::pair<std::string_view, std::string_view> kTrainings[] = {
      {"PyTorchJob",
       "write a TrainJob with the runtime torch-distributed, or send it to a cluster"},
      {"JAXJob", "write a TrainJob with the runtime jax-distributed, or send it to a cluster"},
      {"XGBoostJob",
       "write a TrainJob with the runtime xgboost-distributed, or send it to a cluster"},
      {"MPIJob",
       "nothing here starts processes by mpirun: write a TrainJob with a runtime without MPI, such "
       "as torch-distributed, or send it to a cluster that reconciles MPIJobs (docs/mpi.md)"},
      {"TFJob", "write a TrainJob with a runtime of your own, or send it to a cluster"},
      {"PaddleJob", "write a TrainJob with a runtime of your own, or send it to a cluster"}};
  if (document.get_string("apiVersion").starts_with("kubeflow.org/"))
    for (const auto& [kind, advice] : kTrainings)
      if (document.get_string("kind") == kind) return advice;
  return "leave this document out";
}

}  // namespace

Result<LocalObjects> sort_objects(std::vector<Json> documents, const std::string& ns,
                                  const Registry& registry) {
  LocalObjects sorted;
  std::set<ObjectKey> names;  // the names of jobs
  for (Json& document : documents) {
    const auto resource = find_local_resource(registry, document);
    if (!resource) {
      return kube::fail(kube::ErrorCode::kInvalid, "{}: local mode has no {} {}: {}",
                        title_of(document), document.get_string("apiVersion"),
                        document.get_string("kind"), advice_about(document));
    }
    if (resource->namespaced && kube::ObjectMeta::of(document).ns.empty())
      document["metadata"].set("namespace", ns);
    const auto meta = kube::ObjectMeta::of(document);
    const bool is_job = *resource == kTrainJobs;
    if (meta.name.empty() && !(is_job && !meta.generate_name.empty()))
      return kube::fail(kube::ErrorCode::kInvalid,
                        "{}: metadata.name is missing or no text: a number needs quotes",
                        title_of(document));
    if (is_job && !meta.name.empty() && !names.insert(meta.key()).second)
      return kube::fail(kube::ErrorCode::kInvalid, "{}: the files have it twice: rename one",
                        title_of(document));
    if (is_job) {
      sorted.jobs.push_back(std::move(document));
    } else {
      sorted.others.emplace_back(*resource, std::move(document));
    }
  }
  if (sorted.jobs.empty())
    return kube::fail(kube::ErrorCode::kInvalid,
                      "there is nothing to run: name a file with a TrainJob");
  return sorted;
}

}  // namespace trainer
