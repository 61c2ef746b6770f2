// Everything the control loops read: one store a kind, and the indexes between them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/core/decoded_jobset.hh"
#include "controller/core/decoded_objects.hh"
#include "controller/core/stored_object.hh"
#include "kube/client/object_cache.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Concurrency: the control loops' thread. Lifecycle: outlives the watchers that feed it.
class Stores {
 public:
  // How soon an object must be looked at again. What comes in bursts can wait for its companions,
  // longest where hardly more than counters follow (a pod, a Job that goes on); a new, changed or
  // vanished object, and a Job's end, cannot.
  enum class Debounce { kNone, kShort, kCounters };
  // Told which objects to look at again. `key` is the TrainJob's or the JobSet's.
  struct Listeners {
    std::function<void(const kube::ObjectKey& key, Debounce debounce)> trainjob;
    std::function<void(const kube::ObjectKey& key, Debounce debounce)> jobset;
    // A TrainJob is gone: forget what was remembered about this uid.
    std::function<void(const std::string& uid)> trainjob_gone;
    // A leader under exclusive placement has a node, or has gone on there: compare its followers.
    std::function<void(const kube::ObjectKey& pod)> leader;
    std::function<void(const StoredObject& last)> jobset_gone;
    // Admission's view has changed: a runtime, or a JobSet's or TrainJob's state.
    std::function<void()> runtimes_changed;
  };
  explicit Stores(Listeners listeners);
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  kube::ObjectCache<StoredObject> trainjobs;
  kube::ObjectCache<StoredObject> training_runtimes;
  kube::ObjectCache<StoredObject> cluster_runtimes;
  kube::ObjectCache<StoredObject> jobsets;
  kube::ObjectCache<StoredObject> services;  // owners only
  kube::ObjectCache<JobView> jobs;
  kube::ObjectCache<PodView> pods;
  DecodedObjects<DecodedJobSet> decoded_jobsets{decode_jobset};

  // True once every kind has been listed.
  bool are_synced() const;
  // The Jobs whose controller is the JobSet of this uid, by name.
  std::vector<const JobView*> jobs_of(const std::string& jobset_uid) const;
  // Those of them that were complete when they vanished, as they were last seen.
  std::vector<const JobView*> removed_jobs_of(const std::string& jobset_uid) const;
  // The pods labelled with this JobSet's name, by name.
  std::vector<const PodView*> pods_of(const kube::ObjectKey& jobset) const;
  // Takes what a write of ours answered, as text; kinds without a store are ignored, and so is what
  // cannot be read: the watch tells of the write, too.
  void update_if_newer(const kube::Resource& resource, std::string_view answer);
  // A status of ours that is on its way to an object. The watch may tell of it before its answer
  // does, so of what changes in the object meanwhile only the versions are noted.
  struct StatusUnderWay {
    kube::Resource resource;
    kube::ObjectKey object_key;
    std::vector<std::string> versions;
  };
  // To be called before the status is sent, and what it returns to be kept until one of the two
  // below has been called; who lets go of it before must look at the object again by himself.
  std::shared_ptr<StatusUnderWay> expect_status(const kube::Resource& resource,
                                                const kube::ObjectKey& key);
  // Like offer(), for a status that we wrote: what follows from it can wait for its companions, and
  // from counters alone (`is_minor`) nothing follows. Listeners are told of any other change noted.
  void offer_status(const StatusUnderWay& sent, std::string_view answer, bool is_minor);
  // It was not written: listeners are told of what was noted.
  void give_up_status(const StatusUnderWay& sent);

 private:
  void job_changed(const std::shared_ptr<const JobView>& before,
                   const std::shared_ptr<const JobView>& after);
  void pod_changed(const std::shared_ptr<const PodView>& before,
                   const std::shared_ptr<const PodView>& after);
  void jobset_changed(const std::shared_ptr<const StoredObject>& before,
                      const std::shared_ptr<const StoredObject>& after);
  void trainjob_changed(const std::shared_ptr<const StoredObject>& before,
                        const std::shared_ptr<const StoredObject>& after);

  template <class T>
  using ByKey = std::unordered_map<kube::ObjectKey, T, kube::ObjectKeyHash>;
  using Expected = ByKey<std::weak_ptr<StatusUnderWay>>;
  Expected& expected_of(const kube::Resource& resource);
  // True where the change may be a status of ours, and has been noted.
  bool has_noted(const Expected& expected, const std::shared_ptr<const StoredObject>& before,
                 const std::shared_ptr<const StoredObject>& after) const;
  void tell_noted(const StatusUnderWay& sent, std::string_view written_version);

  Listeners listeners_;
  Expected expected_trainjobs_;
  Expected expected_jobsets_;
  kube::TextCompressor trainjob_compressor_;
  kube::TextCompressor jobset_compressor_;
  enum class Writer { kOthers, kOurStatus, kOurCounters };
  // How soon the object that changes now must be looked at again; nullopt: not at all.
  std::optional<Debounce> debounce_of_change() const;
  Writer writer_ = Writer::kOthers;  // of the change that is taken in now
  std::unordered_map<std::string, kube::ObjectKey> jobset_by_uid_;
  std::unordered_map<std::string, std::map<std::string, std::shared_ptr<const JobView>>>
      jobs_by_owner_;
  // Kept as long as the JobSet stands.
  std::unordered_map<std::string, std::map<std::string, std::shared_ptr<const JobView>>>
      removed_by_owner_;
  ByKey<std::map<std::string, std::shared_ptr<const PodView>>> pods_by_jobset_;
};

}  // namespace trainer
