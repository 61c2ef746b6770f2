#include "tests/instructions/server.hh"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "tests/instructions/objects.hh"

namespace trainer::instructions {
namespace {

using kube::Result;
using kube::Task;

struct Collection {
  std::string path;
  std::string in_namespace;
  std::string kind;
  std::vector<std::string> names;  // the names of files
};

std::vector<Collection> collections() {
  const std::string trainer = "/apis/trainer.kubeflow.org/v1alpha1/";
  const std::string jobset = "/apis/jobset.x-k8s.io/v1alpha2/";
  const std::string batch = "/apis/batch/v1/";
  const std::string core = "/api/v1/";
  const std::string ns = "namespaces/team/";
  return {{trainer + "trainjobs", trainer + ns + "trainjobs/fine-tune", "TrainJob", {"trainjob"}},
          {trainer + "trainingruntimes", "", "TrainingRuntime", {}},
          {trainer + "clustertrainingruntimes",
           trainer + "clustertrainingruntimes/torch-distributed",
           "ClusterTrainingRuntime",
           {"clustertrainingruntime"}},
          {jobset + "jobsets", jobset + ns + "jobsets/fine-tune", "JobSet", {"jobset"}},
          {batch + "jobs", batch + ns + "jobs/fine-tune-node-0", "Job", {"job"}},
          {core + "services", core + ns + "services/fine-tune", "Service", {"service"}},
          {core + "configmaps",
           core + ns + "configmaps/fine-tune-runtime-snapshot",
           "ConfigMap",
           {"configmap"}},
          {core + "pods", "", "Pod", {"pod-0", "pod-1", "pod-2", "pod-3"}}};
}

std::string list_of(const Collection& collection) {
  std::string items;
  for (const auto& name : collection.names) {
    if (!items.empty()) items += ",";
    items += object_text(name);
  }
  return fmt::format(R"({{"kind":"{}List","metadata":{{"resourceVersion":"200"}},"items":[{}]}})",
                     collection.kind, items);
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

}  // namespace

class Server::Stream final : public kube::HttpStream {
 public:
  explicit Stream(kube::asio::io_context& io)
      : pushed_(io, std::chrono::steady_clock::time_point::max()) {}

  int status() const override { return 200; }
  Task<Result<std::string>> read_some(kube::Milliseconds) override {
    while (text_.empty()) {
      const auto [error] =
          co_await pushed_.async_wait(kube::asio::as_tuple(kube::asio::use_awaitable));
      static_cast<void>(error);
    }
    co_return std::exchange(text_, {});
  }
  bool is_quiet() override { return text_.empty(); }
  void push(std::string_view line) {
    text_ += line;
    pushed_.cancel();
  }

 private:
  kube::asio::steady_timer pushed_;
  std::string text_;
};

Server::Server(kube::asio::io_context& io) : io_(io) {
  for (const auto& collection : collections()) {
    lists_[collection.path] = list_of(collection);
    if (collection.in_namespace.empty()) continue;
    objects_[collection.in_namespace] = object_text(collection.names.front());
  }
}

Task<Result<kube::HttpResponse>> Server::send(kube::HttpRequest request) {
  ++requests_;
  last_request_ = request.method + " " + request.target;
  kube::HttpResponse response;
  const auto path = path_of(request.target);
  const auto list = lists_.find(path);
  const auto object = objects_.find(path);
  response.status = 200;
  if (request.method == "GET" && list != lists_.end()) {
    if (request.on_body) {
      request.on_body(list->second);
    } else {
      response.body = list->second;
    }
  } else if (request.method == "GET" && object != objects_.end()) {
    response.body = object->second;
  } else {
    fail("not expected: " + last_request_ + " " + request.body);
  }
  co_return response;
}

Task<Result<std::unique_ptr<kube::HttpStream>>> Server::open(kube::HttpRequest request) {
  const auto path = path_of(request.target);
  auto stream = std::make_unique<Stream>(io_);
  streams_[std::string(path.substr(path.rfind('/') + 1))] = stream.get();
  std::unique_ptr<kube::HttpStream> opened = std::move(stream);
  co_return opened;
}

void Server::push(std::string_view plural, std::string_view line) {
  const auto stream = streams_.find(plural);
  if (stream == streams_.end()) fail(fmt::format("no watch of {}", plural));
  stream->second->push(line);
}

}  // namespace trainer::instructions
