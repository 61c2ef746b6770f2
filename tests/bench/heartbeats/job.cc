#include "tests/bench/heartbeats/job.hh"

#include <fmt/format.h>

#include <algorithm>

#include "controller/status/token_verifier.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"

namespace trainer::bench {
namespace {

using kube::Json;

const kube::ObjectKey kJob{"team-a", "llama"};
constexpr const char* kPods = "/api/v1/namespaces/team-a/pods/";
constexpr const char* kMain = "/workspace/training/train.py:188 train_step";
constexpr const char* kStuck = "/workspace/training/data.py:41 read_shard";
constexpr const char* kCollective =
    "/usr/local/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:2806 "
    "all_reduce";

std::string name_of(int pod) {
  return fmt::format("llama-node-0-{}-x7k2p", pod);
}

Json stacks(bool is_stuck_rank, const std::string& id) {
  Json frames = Json::array();
  frames.push_back(is_stuck_rank ? kStuck : kCollective);
  frames.push_back(kMain);
  for (int i = 0; i < 10; ++i)
    frames.push_back(fmt::format("/workspace/training/loop.py:{} level_{}", 10 * i, i));
  Json threads = Json::array();
  for (int i = 0; i < 6; ++i)
    threads.push_back(Json::object({{"name", i == 0 ? "MainThread" : "Thread"},
                                    {"main", i == 0},
                                    {"state", "S"},
                                    {"wchan", "futex_wait_queue"},
                                    {"frames", frames}}));
  return Json::object({{"id", id}, {"threads", threads}, {"children", Json::array()}});
}

Json agent_message(Json message, const Reporter& reporter, int world) {
  Json workers = Json::array();
  const int first = reporter.pod * kRanksOfPod;
  for (int rank = first; rank < std::min(first + kRanksOfPod, world); ++rank)
    workers.push_back(Json::object({{"rank", rank},
                                    {"pid", 100 + rank - first},
                                    {"born", fmt::format("1234567-{}", 100 + rank - first)},
                                    {"state", "S"},
                                    {"text", ""}}));
  message.set("role", "agent").set("workers", std::move(workers));
  return message;
}

Json object_of(const std::string& name, const std::string& uid, const char* owner_kind,
               const std::string& owner, const std::string& owner_uid) {
  Json reference = Json::object({{"apiVersion", "v1"},
                                 {"kind", owner_kind},
                                 {"name", owner},
                                 {"uid", owner_uid},
                                 {"controller", true}});
  Json metadata = Json::object({{"name", name},
                                {"namespace", kJob.ns},
                                {"uid", uid},
                                {"ownerReferences", Json::array({reference})}});
  return Json::object({{"metadata", std::move(metadata)}});
}

Json pod_object(const std::string& name, int threshold) {
  Json pod = object_of(name, name + "-uid", "Job", "llama-node-0", "x");
  pod["metadata"].set("labels", Json::object({{"jobset.sigs.k8s.io/jobset-name", kJob.name},
                                              {"jobset.sigs.k8s.io/jobset-uid", "set-uid"}}));
  pod["metadata"]["annotations"].set("trainer.kubeflow.org/hang-threshold-seconds",
                                     std::to_string(threshold));
  pod["spec"].set("nodeName", "gpu-" + name);
  return pod;
}

Json review_of(const kube::ServerRequest& request) {
  const auto body = kube::parse_json(request.body);
  const std::string token(body ? body->get("spec").get_string("token") : "");
  const std::string pod = token.substr(token.rfind('.') + 1);
  const Json extra =
      Json::object({{"authentication.kubernetes.io/pod-name", Json::array({pod})},
                    {"authentication.kubernetes.io/pod-uid", Json::array({pod + "-uid"})}});
  const Json user =
      Json::object({{"username", "system:serviceaccount:team-a:default"}, {"extra", extra}});
  return Json::object({{"status", Json::object({{"authenticated", true},
                                                {"audiences", Json::array({status_audience(kJob)})},
                                                {"user", user}})}});
}

}  // namespace

std::string heartbeat_path() {
  return "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/llama/heartbeat";
}

std::string token_of(int pod) {
  std::string claims = kube::base64_encode(kube::print_json(Json::object(
      {{"aud", Json::array({status_audience(kJob)})}, {"note", std::string(600, 'n')}})));
  claims.erase(std::min(claims.find('='), claims.size()));
  return "eyJhbGciOiJSUzI1NiJ9." + claims + "." + name_of(pod);
}

std::string message_of(const Reporter& reporter, const Training& training,
                       const std::string& dump) {
  const int pid = reporter.rank < 0 ? 50 : 100 + reporter.rank % kRanksOfPod;
  Json message = Json::object({{"v", 1},
                               {"role", "rank"},
                               {"pid", pid},
                               {"born", fmt::format("1234567-{}", pid)},
                               {"attempt", "0"},
                               {"restart", reporter.rank < 0 ? "" : "0"},
                               {"sent", reporter.sent}});
  if (reporter.rank < 0)
    return kube::print_json(agent_message(std::move(message), reporter, training.world));
  const bool is_stuck_rank = training.is_stuck && reporter.rank == kStuckRank;
  message.set("rank", reporter.rank)
      .set("world", training.world)
      .set("steps", training.steps)
      .set("batches", training.steps)
      .set("seq", training.steps * 20 + (training.is_stuck && !is_stuck_rank ? 1 : 0))
      .set("idle", training.idle)
      .set("gap", 1.25)
      .set("own", 0.75)
      .set("top", is_stuck_rank ? kStuck : kMain)
      .set("leaf", is_stuck_rank ? kStuck : kCollective)
      .set("cpu", 1234.5)
      .set("io", std::int64_t{123'456'789});
  if (!dump.empty()) message.set("dump", stacks(is_stuck_rank, dump));
  return kube::print_json(message);
}

kube::ServerResponse answer_as_api(const kube::ServerRequest& request, int threshold) {
  kube::ServerResponse response;
  if (request.method == "POST") {
    response.status = 201;
    response.body = kube::print_json(review_of(request));
  } else if (request.path.starts_with(kPods)) {
    response.body =
        kube::print_json(pod_object(request.path.substr(std::string(kPods).size()), threshold));
  } else {
    response.body =
        kube::print_json(object_of(kJob.name, "set-uid", "TrainJob", kJob.name, kJobUid));
  }
  return response;
}

}  // namespace trainer::bench
