// `trainer run --watch`: edits of the code reach the pods of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/code_push.hh"
#include "controller/cli/code_watcher.hh"

namespace trainer {

// The code with which a job was created.
struct SentCode {
  std::vector<CodeEntry> entries;
  std::vector<std::string> parts;  // see pack_code(); each one is in a ConfigMap
};

// Concurrency: the thread of `io`. `client` outlives this.
class RunWatch {
 public:
  using Say = std::function<void(std::string_view sentence)>;
  RunWatch(kube::asio::io_context& io, kube::ApiClient& client, std::string folder, SentCode code,
           Say say);

  // Watches the folder from now on. Errors: the limit of inotify.
  kube::Result<void> begin();

  // Brings each edit into the pods of this job, until one cannot reach them: needs_new_job() then
  // says that the job has to be made again, with code(). `pod_label` has the name of the job. A job
  // of the same name and another uid is left alone.
  kube::Task<void> follow(kube::ObjectKey job, std::string uid, std::string_view pod_label);
  bool needs_new_job() const { return needs_new_job_; }
  const SentCode& code() const { return code_; }
  std::size_t config_maps() const { return config_maps_; }  // those of the job

 private:
  // Returns the reason why the edit did not reach the pods; "" if it did.
  kube::Task<std::string> bring(std::string change, SentCode next);
  // The same, once. Errors that may pass are errors: all of it can be repeated.
  kube::Task<kube::Result<std::string>> try_to_bring(const std::string& change,
                                                     const SentCode& next);
  kube::Task<kube::Result<void>> replace_config_maps(const std::vector<std::string>& parts);
  // Waits until no pod is about to start.
  kube::Task<kube::Result<PushTargets>> find_pods(const std::string& change);

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  const std::string folder_;
  SentCode code_;
  const Say say_;
  CodeWatcher watcher_;
  kube::ObjectKey job_;
  std::string uid_;
  std::string pod_label_;
  std::size_t config_maps_ = 0;
  std::uint64_t round_ = 0;
  std::string obstacle_;  // the reason why no pod can be reached, also by later edits
  bool needs_new_job_ = false;
  bool is_job_another_ = false;
};

}  // namespace trainer
