// `trainer local stop` and `down` wait for jobs, against answers in memory and on a clock that the
// test moves.
#include "controller/cli/local_jobs.hh"

#include <map>
#include <string>
#include <vector>

#include "kube/client/transport.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

// Running TrainJobs by name, each with a pod that ends at a time. A suspension is noted.
class Answers final : public kube::Transport {
 public:
  explicit Answers(kube::FakeClock& clock) : clock_(clock) {}

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override {
    const std::string path = request.target.substr(0, request.target.find('?'));
    kube::HttpResponse response;
    response.status = 200;
    if (path.ends_with("/pods")) {
      response.body = kube::print_json(pods(request.target));
      if (request.on_body) request.on_body(response.body);
      co_return response;
    }
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!ends.contains(name)) {
      response.status = 404;
      response.body = R"({"kind":"Status","code":404,"reason":"NotFound","message":"not found"})";
    } else {
      if (request.method == "PATCH") suspended.push_back(name);
      response.body = R"({"kind":"TrainJob","metadata":{"name":")" + name + R"("},"spec":{}})";
    }
    co_return response;
  }
  kube::Task<kube::Result<std::unique_ptr<kube::HttpStream>>> open(kube::HttpRequest) override {
    co_return kube::fail(kube::ErrorCode::kUnsupported, "no stream is expected");
  }

  std::map<std::string, kube::Time> ends;  // the end of the pod, by job
  std::vector<std::string> suspended;

 private:
  Json pods(const std::string& target) const {
    Json list = Json::object({{"metadata", Json::object()}, {"items", Json::array()}});
    for (const auto& [job, end] : ends) {
      if (!target.ends_with("%3D" + job) && target.find("%3D" + job + "&") == target.npos) continue;
      Json pod = Json::object({{"metadata", Json::object({{"name", job}})}});
      pod.set("spec", Json::object({{"terminationGracePeriodSeconds", 300}}));
      const char* phase = clock_.now() < end ? "Running" : "Succeeded";
      pod.set("status", Json::object({{"phase", phase}}));
      list["items"].push_back(std::move(pod));
    }
    return list;
  }

  kube::FakeClock& clock_;
};

struct Stopping {
  kube::asio::io_context io{1};
  kube::FakeClock clock;
  kube::SystemRandom random;
  Answers answers{clock};
  kube::ApiClient client{answers, clock, random};
  std::vector<std::string> said;

  kube::Time in(int seconds) const { return clock.now() + std::chrono::seconds(seconds); }

  kube::Result<void> stop(std::vector<kube::ObjectKey> jobs) {
    std::optional<kube::Result<void>> result;
    Say say = [this](std::string_view sentence) { said.emplace_back(sentence); };
    kube::asio::co_spawn(io, stop_jobs(client, std::move(jobs), false, std::move(say)),
                         [&](std::exception_ptr, kube::Result<void> done) { result = done; });
    for (kube::settle(io); !result; kube::settle(io)) {
      REQUIRE(clock.timers() > 0);
      clock.advance(std::chrono::ceil<std::chrono::microseconds>(clock.until_next()));
    }
    return *result;
  }
};

}  // namespace

TEST_CASE("pods have the whole of their grace period to end", "[local]") {
  Stopping test;
  test.answers.ends = {{"saves", test.in(200)}, {"quick", test.in(1)}};
  CHECK(test.stop({{"ns", "saves"}, {"ns", "quick"}}));
  CHECK(test.clock.now() >= test.answers.ends.at("saves"));
  CHECK(test.said == std::vector<std::string>{
                         "TrainJob ns/saves: its pods have 300 s to end: waiting for them"});
}

TEST_CASE("pods that do not end by their grace period are an error", "[local]") {
  Stopping test;
  test.answers.ends = {{"stays", test.in(1'000)}};
  const auto stopped = test.stop({{"ns", "stays"}});
  REQUIRE(!stopped);
  CHECK(stopped.error().message.starts_with(
      "TrainJob ns/stays: its pods have not ended within 330 s"));
}

TEST_CASE("a job that is gone does not keep others from being stopped", "[local]") {
  Stopping test;
  test.answers.ends = {{"other", test.in(10)}};
  CHECK(test.stop({{"ns", "gone"}, {"ns", "other"}}));
  CHECK(test.answers.suspended == std::vector<std::string>{"other"});
  CHECK(test.clock.now() >= test.answers.ends.at("other"));
}
