// Reads what the pages of `trainer ui` show.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/cli/read_why.hh"
#include "controller/registration/kind_registration.hh"
#include "controller/ui/progress.hh"
#include "controller/ui/site.hh"
#include "controller/ui/views.hh"
#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"

namespace trainer {

// Asks the API server with the rights of the kubeconfig's user, only when a browser asks. Browsers
// ask every two seconds, so answers are kept for some time: the longer, the longer they took.
// Concurrency: the io_context thread of the client.
class UiJobs {
 public:
  // `ns`: "" for all namespaces. `client` and `registry` outlive this.
  UiJobs(kube::ApiClient& client, const Registry& registry, std::string ns, std::string program);

  kube::Task<ui::View> list(ui::Parameters parameters);
  kube::Task<ui::View> job(ui::Parameters parameters);

 private:
  template <class T>
  struct Kept {
    kube::Clock::Steady until;
    std::shared_ptr<const T> value;
  };
  kube::Task<std::shared_ptr<const ui::JobList>> read_list();
  void add_row(const KindRegistration& kind, const kube::Json& object, ui::JobList& list);
  ui::JobRow row_of(const KindRegistration& kind, const kube::Json& object,
                    const ObjectState& state);
  // Fills in what costs more than one request: `why`, pods and logs.
  kube::Task<std::shared_ptr<const ui::JobPage>> read_evidence(const KindRegistration& kind,
                                                               const kube::Json& object,
                                                               std::string pod);
  kube::Task<void> read_logs(const KindRegistration& kind, const std::vector<kube::Json>& objects,
                             std::string pod, ui::JobPage& page);
  // Returns until when an answer is kept that took from `began` until now.
  kube::Clock::Steady kept_until(kube::Clock::Steady began) const;

  kube::ApiClient& client_;
  const Registry& registry_;
  const std::string ns_;
  const std::string program_;
  ui::ProgressHistory history_;
  kube::Semaphore turns_{4};  // this many pages are read at a time
  Kept<ui::JobList> list_;
  std::map<std::string, Kept<ui::JobPage>> evidence_;
};

}  // namespace trainer
