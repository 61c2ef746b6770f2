// Progress reports: whose are accepted, what is written, and how often.
#include <algorithm>

#include "controller/status/status_handler.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kTrainJobPath =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status";
const std::string kReviews = "/apis/authentication.k8s.io/v1/tokenreviews";
const std::string kPod = "/api/v1/namespaces/team-a/pods/j-node-0-0-x";
const std::string kReportedJobSet = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team-a/jobsets/j";
const std::string kReportedJob =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j";

const std::string kAudience = "trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status";
constexpr std::int64_t kNone = 1'767'225'600;  // the time of the fake clock

std::string jwt(const std::string& claims) {
  std::string text = kube::base64_encode(claims);
  text.erase(std::min(text.find('='), text.size()));
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return "eyJhbGciOiJSUzI1NiJ9." + text + ".c2lnbmF0dXJl";
}

std::string token(const std::string& id = "1") {
  return jwt(R"({"aud":["other",")" + kAudience + R"("],"exp":)" + std::to_string(kNone + 3'600) +
             R"(,"jti":")" + id + R"(","note":"?>ÿ~"})");
}

std::string review(const std::string& audience = kAudience,
                   const std::string& username = "system:serviceaccount:team-a:default",
                   const std::string& pod = "j-node-0-0-x", bool is_authenticated = true) {
  Json extra = Json::object();
  if (!pod.empty()) {
    extra.set("authentication.kubernetes.io/pod-name", Json::array({pod}));
    extra.set("authentication.kubernetes.io/pod-uid", Json::array({"pod-uid"}));
  }
  Json user = Json::object({{"username", username}, {"extra", std::move(extra)}});
  Json status = Json::object({{"authenticated", is_authenticated},
                              {"audiences", Json::array({audience})},
                              {"user", std::move(user)}});
  return kube::print_json(Json::object({{"status", std::move(status)}}));
}

std::string stored_pod(const std::string& jobset = "j", const std::string& uid = "pod-uid",
                       const std::string& owner = "Job",
                       const std::string& jobset_uid = "set-uid") {
  return R"({"metadata":{"name":"j-node-0-0-x","namespace":"team-a","uid":")" + uid +
         R"(","labels":{"jobset.sigs.k8s.io/jobset-name":")" + jobset +
         R"(","jobset.sigs.k8s.io/jobset-uid":")" + jobset_uid +
         R"("},"ownerReferences":[{"apiVersion":"batch/v1","kind":")" + owner +
         R"(","name":"j-node-0","uid":"x","controller":true}]}})";
}

std::string stored_jobset(const std::string& uid = "set-uid", const std::string& owner = "j",
                          const std::string& owner_uid = "job-uid") {
  return R"({"metadata":{"name":"j","namespace":"team-a","uid":")" + uid +
         R"(","ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":")" +
         owner + R"(","uid":")" + owner_uid + R"(","controller":true}]}})";
}

std::string stored_trainjob(const std::string& uid = "job-uid", const std::string& version = "7") {
  return R"({"metadata":{"name":"j","namespace":"team-a","uid":")" + uid +
         R"(","resourceVersion":")" + version + R"("}})";
}

std::string report(int progress) {
  return R"({"trainerStatus":{"lastUpdatedTime":"2026-08-20T10:00:00.5+00:00","progressPercentage":)" +
         std::to_string(progress) + "}}";
}

struct StatusFixture : kube::test::ScriptedPeer {
  const std::shared_ptr<HeartbeatBoard> board = std::make_shared<HeartbeatBoard>();
  std::unique_ptr<StatusHandler> handler;

  StatusFixture() { limit(StatusLimits()); }

  void limit(StatusLimits limits) {
    handler = std::make_unique<StatusHandler>(io, client, limits, board, log);
  }
  void trust() {
    api.on("POST", kReviews).answer(201, review()).always();
    api.on("GET", kPod).answer(200, stored_pod()).always();
    api.on("GET", kReportedJobSet).answer(200, stored_jobset()).always();
    api.on("GET", kReportedJob).answer(200, stored_trainjob()).always();
  }
  void accept_writes() {
    api.on("PATCH", kTrainJobPath).answer(200, stored_trainjob("job-uid", "8")).always();
  }

  kube::ServerRequest request(std::string body) {
    kube::ServerRequest request;
    request.method = "POST";
    request.path = kTrainJobPath;
    request.body = std::move(body);
    request.authorization = kube::Secret<std::string>("Bearer " + token());
    return request;
  }
  kube::ServerResponse ask(kube::ServerRequest request) {
    return kube::run_task(io, handler->handle(std::move(request)));
  }
  kube::ServerResponse ask(std::string body) { return ask(request(std::move(body))); }

  // The progress that each write carried.
  std::vector<std::int64_t> written() const {
    std::vector<std::int64_t> values;
    for (const auto& item : api.log()) {
      if (item.method != "PATCH") continue;
      const auto body = kube::parse_json(item.body);
      REQUIRE(body);
      values.push_back(body->find_path({"status", "trainerStatus"})->get_int("progressPercentage"));
    }
    return values;
  }
  int count(const std::string& method, const std::string& path) const {
    int found = 0;
    for (const auto& item : api.log()) found += item.method == method && item.path == path;
    return found;
  }
};

}  // namespace

TEST_CASE_METHOD(StatusFixture,
                 "a report of the job's own pod is applied to its status and echoed") {
  trust();
  accept_writes();
  const auto response = ask(report(42));
  CHECK(response.status == 200);
  CHECK(
      *kube::parse_json(response.body) ==
      *kube::parse_json(
          R"({"trainerStatus":{"lastUpdatedTime":"2026-08-20T10:00:00Z","progressPercentage":42}})"));
  REQUIRE(api.log().size() == 5);
  const auto& asked = api.log()[0];
  CHECK(kube::parse_json(asked.body)
            ->find_path({"spec", "audiences"})
            ->as_array()
            .front()
            .as_string() == "trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status");
  const auto& write = api.log()[4];
  CHECK(write.headers.at("content-type").find("application/apply-patch+yaml") != std::string::npos);
  CHECK(write.query.find("fieldManager=trainer-status") != std::string::npos);
  CHECK(write.query.find("force=true") != std::string::npos);
  CHECK(*kube::parse_json(write.body) ==
        *kube::parse_json(R"({"apiVersion":"trainer.kubeflow.org/v1alpha1",
      "kind":"TrainJob","metadata":{"name":"j","namespace":"team-a","resourceVersion":"7"},
      "status":{"trainerStatus":{"lastUpdatedTime":"2026-08-20T10:00:00Z","progressPercentage":42}}})"));
}

TEST_CASE_METHOD(StatusFixture, "only reports of a pod of the job are accepted") {
  struct Case {
    const char* what;
    std::string review;
    std::string pod;
    std::string jobset = stored_jobset();
  };
  const Case cases[] = {
      {"not authenticated",
       review("trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status",
              "system:serviceaccount:team-a:default", "j-node-0-0-x", false),
       stored_pod()},
      {"another audience", review("https://kubernetes.default.svc"), stored_pod()},
      {"another namespace",
       review("trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status",
              "system:serviceaccount:team-ab:x"),
       stored_pod()},
      {"a person",
       review("trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status", "alice"),
       stored_pod()},
      {"not bound to a pod",
       review("trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/j/status",
              "system:serviceaccount:team-a:default", ""),
       stored_pod()},
      {"a pod of another job", review(), stored_pod("k")},
      {"a later pod of the same name", review(), stored_pod("j", "other-uid")},
      {"a pod of no Job", review(), stored_pod("j", "pod-uid", "ReplicaSet")},
      {"a pod of a former JobSet", review(), stored_pod("j", "pod-uid", "Job", "former-uid")},
      {"a JobSet of another owner", review(), stored_pod(), stored_jobset("set-uid", "k")},
      {"a JobSet without an owner", review(), stored_pod(), R"({"metadata":{"uid":"set-uid"}})"},
      {"no review at all", "[]", stored_pod()},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    StatusFixture fixture;
    fixture.api.on("POST", kReviews).answer(201, c.review);
    fixture.api.on("GET", kPod).answer(200, c.pod);
    fixture.api.on("GET", kReportedJobSet).answer(200, c.jobset);
    fixture.accept_writes();
    const auto response = fixture.ask(report(1));
    CHECK(response.status == 403);
    CHECK(
        *kube::parse_json(response.body) ==
        *kube::parse_json(
            R"({"metadata":{},"status":"Failure","message":"Forbidden","reason":"Forbidden","code":403})"));
    CHECK(fixture.written().empty());
  }
}

TEST_CASE_METHOD(StatusFixture, "a report never lands on a successor of the same name") {
  // The token is still trusted when the job is deleted, and created again.
  api.on("GET", kReportedJob).answer(200, stored_trainjob());
  api.on("GET", kReportedJob).answer(200, stored_trainjob("successor")).always();
  api.on("PATCH", kTrainJobPath).answer(200, stored_trainjob("job-uid", "8"));
  api.on("PATCH", kTrainJobPath)
      .answer(409, R"({"kind":"Status","message":"x","reason":"Conflict","code":409})")
      .always();
  trust();
  REQUIRE(ask(report(1)).status == 200);
  clock.advance(std::chrono::seconds(2));
  CHECK(ask(report(2)).status == 404);
  CHECK(count("POST", kReviews) == 1);
  CHECK(written() == std::vector<std::int64_t>{1, 2});  // the second one was refused
}

TEST_CASE_METHOD(StatusFixture, "a report is written again after another client's write") {
  trust();
  api.on("PATCH", kTrainJobPath)
      .answer(409, R"({"kind":"Status","message":"x","reason":"Conflict","code":409})");
  accept_writes();
  CHECK(ask(report(1)).status == 200);
  CHECK(written() == std::vector<std::int64_t>{1, 1});
  CHECK(count("GET", kReportedJob) == 2);
  // The answer says which version is the next one's: no read is needed.
  clock.advance(std::chrono::seconds(2));
  CHECK(ask(report(2)).status == 200);
  CHECK(count("GET", kReportedJob) == 2);
  CHECK(kube::parse_json(api.log().back().body)
            ->find_path({"metadata", "resourceVersion"})
            ->as_string() == "8");
}

TEST_CASE_METHOD(StatusFixture, "without a token no TokenReview is sent") {
  auto bare = request(report(1));
  bare.authorization = kube::Secret<std::string>("");
  CHECK(ask(std::move(bare)).status == 403);
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(StatusFixture, "no TokenReview is sent for a token whose own claims exclude it") {
  const auto claims = [](const std::string& audience, std::int64_t end) {
    return jwt(R"({"aud":)" + audience + R"(,"exp":)" + std::to_string(end) + "}");
  };
  const std::string quoted = "\"" + kAudience + "\"";
  for (const std::string& invalid :
       {std::string("token"), std::string("a.b"), std::string(".."), std::string("a.!.b"),
        token() + ".x", jwt("[]"), jwt("{}"), jwt("{"),
        claims("\"https://kubernetes\"", kNone + 60),
        claims("[\"https://kubernetes\"]", kNone + 60), claims(quoted, kNone - 61)}) {
    CAPTURE(invalid);
    auto one = request(report(1));
    one.authorization = kube::Secret<std::string>("Bearer " + invalid);
    CHECK(ask(std::move(one)).status == 403);
    CHECK(api.log().empty());
  }
  trust();
  accept_writes();
  // A single audience may be a string, and the clocks may differ.
  auto good = request(report(1));
  good.authorization = kube::Secret<std::string>("Bearer " + claims(quoted, kNone - 59));
  CHECK(ask(std::move(good)).status == 200);
}

TEST_CASE_METHOD(StatusFixture, "four TokenReviews are in flight at most") {
  api.on("POST", kReviews).hold().times(4);
  trust();
  accept_writes();
  std::vector<int> statuses;
  for (int i = 0; i < 6; ++i) {
    auto one = request(report(i));
    one.authorization = kube::Secret<std::string>("Bearer " + token(std::to_string(i)));
    kube::asio::co_spawn(io, handler->handle(std::move(one)),
                         [&](std::exception_ptr, kube::ServerResponse response) {
                           statuses.push_back(response.status);
                         });
  }
  REQUIRE(kube::run_until(io, [&] { return count("POST", kReviews) == 4; }));
  kube::settle(io);
  CHECK(count("POST", kReviews) == 4);
  CHECK(statuses.empty());
  api.drop_connections();
  // A review that was cut off is asked for again, and writes to one job are a second apart.
  REQUIRE(kube::run_until(io, [&] {
    clock.advance(std::chrono::milliseconds(10));
    return statuses.size() == 6;
  }));
  CHECK(count("POST", kReviews) == 10);
  CHECK(std::count(statuses.begin(), statuses.end(), 200) == 6);
}

TEST_CASE_METHOD(StatusFixture, "heartbeats are for the replica that leads") {
  trust();
  kube::ServerRequest heartbeat = request(R"({"v":1})");
  heartbeat.path = kReportedJob + "/heartbeat";
  CHECK(ask(heartbeat).status == 421);
  CHECK(api.log().empty());
  board->set_leading();
  CHECK(ask(heartbeat).status == 422);
  heartbeat.authorization = kube::Secret<std::string>("Bearer nonsense");
  CHECK(ask(heartbeat).status == 403);
  heartbeat.method = "GET";
  CHECK(ask(heartbeat).status == 404);
}

TEST_CASE_METHOD(StatusFixture, "a pod is trusted longer for heartbeats than for reports") {
  trust();
  accept_writes();
  board->set_leading();
  kube::ServerRequest heartbeat = request(R"({"v":1})");
  heartbeat.path = kReportedJob + "/heartbeat";
  ask(heartbeat);
  CHECK(count("POST", kReviews) == 1);
  clock.advance(std::chrono::minutes(20));
  ask(heartbeat);
  CHECK(count("POST", kReviews) == 1);
  ask(report(1));
  CHECK(count("POST", kReviews) == 2);
  clock.advance(std::chrono::minutes(26));
  ask(heartbeat);
  CHECK(count("POST", kReviews) == 3);
}

TEST_CASE_METHOD(StatusFixture, "refusals do not fill the log") {
  const kube::Log usual(kube::LogLevel::kInfo, kube::Log::Format::kText);
  handler = std::make_unique<StatusHandler>(io, client, StatusLimits(), board, usual);
  const test::CapturedErrors errors;
  api.on("POST", kReviews).answer(201, review("another"));
  CHECK(ask(report(1)).status == 403);
  CHECK(errors.text().empty());
  // A failed TokenReview is logged.
  CHECK(ask(report(1)).status == 500);
  CHECK(errors.count("TokenReview") == 1);
}

TEST_CASE_METHOD(StatusFixture,
                 "a token that could not be checked is an internal error, not a refusal") {
  api.on("POST", kReviews)
      .answer(
          403,
          R"({"kind":"Status","status":"Failure","message":"tokenreviews is forbidden","reason":"Forbidden","code":403})")
      .always();
  CHECK(ask(report(1)).status == 500);
}

TEST_CASE_METHOD(StatusFixture,
                 "a positive result is cached for a minute, for this token and this job") {
  trust();
  accept_writes();
  CHECK(ask(report(1)).status == 200);
  clock.advance(std::chrono::seconds(59));
  CHECK(ask(report(2)).status == 200);
  CHECK(count("POST", kReviews) == 1);
  auto other = request(report(3));
  other.authorization = kube::Secret<std::string>("Bearer " + token("2"));
  CHECK(ask(std::move(other)).status == 200);
  CHECK(count("POST", kReviews) == 2);
  clock.advance(std::chrono::seconds(61));
  CHECK(ask(report(4)).status == 200);
  CHECK(count("POST", kReviews) == 3);
}

TEST_CASE_METHOD(StatusFixture, "reports that follow closely become one write, of the last one") {
  trust();
  accept_writes();
  CHECK(ask(report(1)).status == 200);
  for (const int progress : {2, 3, 4}) CHECK(ask(report(progress)).status == 200);
  CHECK(written() == std::vector<std::int64_t>{1});
  clock.advance(std::chrono::milliseconds(999));
  kube::settle(io);
  CHECK(written() == std::vector<std::int64_t>{1});
  clock.advance(std::chrono::milliseconds(1));
  CHECK(kube::run_until(io, [&] { return written().size() == 2; }));
  CHECK(written() == std::vector<std::int64_t>{1, 4});
  // After a pause the answer comes after the write, however late the answer before it was.
  int status = 0;
  kube::asio::co_spawn(
      io, handler->handle(request(report(5))),
      [&](std::exception_ptr, kube::ServerResponse response) { status = response.status; });
  CHECK(kube::run_until(io, [&] {
    if (written().size() < 3) clock.advance(std::chrono::seconds(1));
    return status != 0;
  }));
  CHECK(status == 200);
  CHECK(written() == std::vector<std::int64_t>{1, 4, 5});
}

TEST_CASE_METHOD(StatusFixture, "pending reports are written before the process ends") {
  trust();
  accept_writes();
  ask(report(1));
  ask(report(2));
  kube::run_task(io, handler->flush());
  CHECK(written() == std::vector<std::int64_t>{1, 2});
}

TEST_CASE_METHOD(StatusFixture, "a rate that is configured holds for all jobs together") {
  StatusLimits limits;
  limits.min_interval = kube::Milliseconds(0);
  limits.qps = 1;
  limits.burst = 2;
  limit(limits);
  trust();
  accept_writes();
  ask(report(1));
  ask(report(2));
  CHECK(written().size() == 2);
  bool is_answered = false;
  kube::asio::co_spawn(io, handler->handle(request(report(3))),
                       [&](std::exception_ptr, kube::ServerResponse) { is_answered = true; });
  CHECK(kube::run_until(io, [&] { return clock.timers() > 0; }));
  CHECK_FALSE(is_answered);
  CHECK(written().size() == 2);
  clock.advance(std::chrono::seconds(1));
  CHECK(kube::run_until(io, [&] { return is_answered; }));
  CHECK(written().size() == 3);
}

TEST_CASE_METHOD(StatusFixture, "the API server's refusal is the answer") {
  trust();
  SECTION("a job that does not exist") {
    api.on("PATCH", kTrainJobPath)
        .answer(
            404,
            R"({"kind":"Status","status":"Failure","message":"x","reason":"NotFound","code":404})");
    const auto response = ask(report(1));
    CHECK(response.status == 404);
    CHECK(kube::parse_json(response.body)->get_string("message") == "Train job not found");
    CHECK(kube::parse_json(response.body)->get_string("reason") == "NotFound");
  }
  SECTION("a value") {
    api.on("PATCH", kTrainJobPath)
        .answer(
            422,
            R"({"kind":"Status","status":"Failure","message":"j is bad","reason":"Invalid","code":422})");
    const auto response = ask(report(1));
    CHECK(response.status == 422);
    CHECK(kube::parse_json(response.body)->get_string("message") == "j is bad");
  }
  SECTION("after a refusal the next report is written before it is answered") {
    api.on("PATCH", kTrainJobPath)
        .answer(
            404,
            R"({"kind":"Status","status":"Failure","message":"x","reason":"NotFound","code":404})")
        .always();
    CHECK(ask(report(1)).status == 404);
    CHECK(ask(report(2)).status == 404);
    CHECK(written().size() == 2);
  }
}

TEST_CASE_METHOD(StatusFixture, "bad requests are answered as upstream's server does") {
  trust();
  accept_writes();
  const auto reason_of = [](const kube::ServerResponse& response) {
    return std::string(kube::parse_json(response.body)->get_string("reason"));
  };
  auto wrong_method = request("{}");
  wrong_method.method = "GET";
  CHECK(ask(std::move(wrong_method)).status == 404);
  auto wrong_path = request("{}");
  wrong_path.path = "/";
  const auto not_found = ask(std::move(wrong_path));
  CHECK(not_found.status == 404);
  CHECK(kube::parse_json(not_found.body)->get_string("message") == "Not found");

  const auto large = ask(std::string(65'537, ' '));
  CHECK(large.status == 413);
  CHECK(reason_of(large) == "RequestEntityTooLarge");
  const auto garbled = ask(std::string("{"));
  CHECK(garbled.status == 422);
  CHECK(kube::parse_json(garbled.body)->get_string("message") == "Invalid payload");
  const auto too_far = ask(report(150));
  CHECK(too_far.status == 422);
  CHECK(too_far.body.find("\\\"j\\\"") != std::string::npos);
  const auto nothing = ask(std::string("{}"));
  CHECK(nothing.status == 200);
  CHECK(nothing.body == "{}");
  CHECK(written().empty());
}

TEST_CASE_METHOD(StatusFixture, "one invalid metric does not drop the others") {
  trust();
  accept_writes();
  const auto response = ask(std::string(
      R"({"trainerStatus":{"lastUpdatedTime":"2026-08-20T10:00:00Z","metrics":[{"name":"","value":"1"},{"name":"loss","value":"0.5"}]}})"));
  CHECK(response.status == 200);
  const auto body = kube::parse_json(api.log().back().body);
  CHECK(body->find_path({"status", "trainerStatus"})->get_array("metrics").size() == 1);
}
