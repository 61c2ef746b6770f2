// `trainer ui` against a scripted API server: whom it lets in, what it asks for, and what it says
// if something cannot be read.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "controller/cli/ui_jobs.hh"
#include "controller/kinds/registry.hh"
#include "controller/ui/site.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

using boost::asio::ip::tcp;
using kube::test::contains;

const std::string kTrainers = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs";
const std::string kSets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets";
const std::string kPyTorch = "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs";
const std::string kUiPods = "/api/v1/namespaces/ns/pods";
const std::string kMarkup = "<img src=x onerror=alert(1)>";
const std::string kMarkupShown = "&lt;img src=x onerror=alert(1)&gt;";
const std::string kJobQuery = "job?resource=trainjobs.v1alpha1.trainer.kubeflow.org&namespace=ns&";

std::string ui_list(const std::string& items) {
  return R"({"metadata":{"resourceVersion":"9"},"items":[)" + items + "]}";
}

std::string ui_trainjob(const std::string& name, const std::string& status,
                        const std::string& metadata = "") {
  return R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":")" +
         name + R"(","namespace":"ns","uid":"u-)" + name +
         R"(","creationTimestamp":"2026-08-20T10:00:00Z")" + metadata +
         R"(},"spec":{"runtimeRef":{"name":"r"}},"status":)" + status + "}";
}

std::string ui_refusal(const std::string& reason, int code) {
  return R"({"kind":"Status","status":"Failure","reason":")" + reason +
         R"(","message":"no <b>access</b>","code":)" + std::to_string(code) + "}";
}

kube::Task<std::string> ask_ui(unsigned short port, std::string text) {
  const auto executor = co_await kube::asio::this_coro::executor;
  constexpr auto kToken = kube::asio::as_tuple(kube::asio::use_awaitable);
  tcp::socket socket(executor);
  co_await socket.async_connect({kube::asio::ip::make_address("127.0.0.1"), port}, kToken);
  co_await kube::asio::async_write(socket, kube::asio::buffer(text), kToken);
  std::string answer;
  co_await kube::asio::async_read(socket, kube::asio::dynamic_buffer(answer), kToken);
  co_return answer;
}

int ui_status(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

std::string ui_text_between(const std::string& text, const std::string& before, char end) {
  const auto at = text.find(before);
  REQUIRE(at != std::string::npos);
  const auto begin = at + before.size();
  return text.substr(begin, text.find(end, begin) - begin);
}

struct UiFixture : kube::test::ScriptedPeer {
  Registry registry = full_registry();
  std::unique_ptr<UiJobs> jobs;
  std::unique_ptr<ui::Site> site;
  std::unique_ptr<kube::HttpServer> server;
  int opened = 0;
  std::string host;
  std::string folder;
  std::string cookie;

  explicit UiFixture(const std::string& ns = "ns") {
    jobs = std::make_unique<UiJobs>(client, registry, ns, "trainer");
    ui::Site::Options options;
    options.list = [this](ui::Parameters given) { return jobs->list(std::move(given)); };
    options.job = [this](ui::Parameters given) { return jobs->job(std::move(given)); };
    options.on_opened = [this] { ++opened; };
    site = std::make_unique<ui::Site>(std::move(options));
    kube::ServerOptions served;
    served.address = "127.0.0.1";
    served.headers = ui::answer_headers();
    auto made = kube::serve(io, served, [this](kube::ServerRequest request) {
      return site->handle(std::move(request));
    });
    REQUIRE(made);
    server = std::move(*made);
    site->set_port(server->port());
    host = "127.0.0.1:" + std::to_string(server->port());
  }
  // Each answer has the headers that protect the browser.
  std::string send(const std::string& text) {
    std::string answer = kube::run_task(io, ask_ui(server->port(), text));
    CAPTURE(text, answer);
    for (const char* header :
         {"Content-Security-Policy: default-src 'none'; script-src 'self'; ",
          "X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
          "Cache-Control: no-store\r\n", "X-Frame-Options: DENY\r\n"})
      CHECK_THAT(answer, contains(header));
    CHECK(answer.find("Access-Control") == std::string::npos);
    return answer;
  }
  std::string request(const std::string& method, const std::string& path,
                      const std::string& headers, const std::string& to) {
    return send(method + " " + path + " HTTP/1.1\r\nHost: " + to + "\r\nConnection: close\r\n" +
                headers + "\r\n");
  }
  void open() {
    const std::string address = site->new_address();
    REQUIRE(address.starts_with("http://" + host + "/open?key="));
    const std::string answer = request("GET", address.substr(7 + host.size()), "", host);
    REQUIRE(ui_status(answer) == 200);
    folder = ui_text_between(answer, "Refresh: 0; url=", '\r');
    cookie = "Cookie: " + ui_text_between(answer, "Set-Cookie: ", ';') + "\r\n";
    CHECK_THAT(answer, contains("; Path=" + folder + "; HttpOnly; SameSite=Strict\r\n"));
  }
  std::string get(const std::string& page) { return request("GET", folder + page, cookie, host); }
  // Answers each list of a kind that has no script yet with nothing.
  void serve_nothing_else() {
    for (const KindRegistration& kind : registry)
      if (kind.why)
        api.on("GET", kube::api_path(kind.controller.resource(), {"ns", ""}))
            .answer(200, ui_list(""))
            .always();
  }
  std::size_t asked() const { return api.lines().size(); }
};

}  // namespace

TEST_CASE_METHOD(UiFixture, "an address works once, for one browser") {
  const std::string first = site->new_address();
  const std::string second = site->new_address();
  const auto ask = [this](const std::string& method, const std::string& address) {
    return request(method, address.substr(7 + host.size()), "", host);
  };
  const std::string replaced = ask("GET", first);
  CHECK(ui_status(replaced) == 403);
  CHECK_THAT(replaced, contains("each works once"));
  // A program that looks at a link before its user does not use it up.
  CHECK(ui_status(ask("HEAD", second)) == 200);
  CHECK(opened == 0);
  CHECK(ui_status(ask("GET", second)) == 200);
  CHECK(opened == 1);
  const std::string again = ask("GET", second);
  CHECK(ui_status(again) == 403);
  CHECK(again.find("Set-Cookie") == std::string::npos);
  CHECK(ui_status(request("GET", "/open", "", host)) == 403);
  CHECK(ui_status(request("GET", "/open?key=", "", host)) == 403);
}

TEST_CASE_METHOD(UiFixture,
                 "nothing is shown without the cookie, to other hosts or to other sites") {
  open();
  serve_nothing_else();
  REQUIRE(ui_status(get("")) == 200);
  const std::size_t before = asked();
  struct Case {
    const char* what;
    std::string path;
    std::string headers;
    std::string to;
    int status;
  };
  const std::string port = host.substr(host.find(':'));
  const Case cases[] = {
      {"no cookie", folder, "", host, 403},
      {"another cookie", folder, "Cookie: trainer-ui=0\r\n", host, 403},
      {"a cookie without a value", folder, "Cookie: trainer-ui\r\n", host, 403},
      {"another folder", "/", cookie, host, 403},
      {"the style without a cookie", folder + "style.css", "", host, 403},
      {"a name that leads here", folder, cookie, "evil.example" + port, 403},
      {"another port", folder, cookie, "127.0.0.1:1", 403},
      {"no port", folder, cookie, "127.0.0.1", 403},
      {"a fetch of another site", folder, cookie + "Sec-Fetch-Site: cross-site\r\n", host, 403},
      {"a fetch of another port", folder, cookie + "Sec-Fetch-Site: same-site\r\n", host, 403},
      {"another origin", folder, cookie + "Origin: http://evil.example\r\n", host, 403},
      {"an origin without a name", folder, cookie + "Origin: null\r\n", host, 403},
      {"the address with another name", "/open?key=0", "", "evil.example" + port, 403},
      {"an unknown page", folder + "secrets", cookie, host, 404},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const std::string answer = request("GET", c.path, c.headers, c.to);
    CHECK(ui_status(answer) == c.status);
    CHECK(answer.find("<html") == std::string::npos);
  }
  CHECK(asked() == before);
  // These are its own.
  for (const char* more : {"Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n"})
    CHECK(ui_status(request("GET", folder, cookie + more, host)) == 200);
  CHECK(ui_status(request("GET", folder, cookie, "localhost" + port)) == 200);
  CHECK(ui_status(request("GET", folder, cookie + "Origin: http://" + host + "\r\n", host)) == 200);
  CHECK(ui_status(request("GET", folder, "Cookie: a=b; trainer-ui=0; " + cookie.substr(8), host)) ==
        200);
}

TEST_CASE_METHOD(UiFixture, "only GET and HEAD are answered, and what is malformed is refused") {
  open();
  serve_nothing_else();
  REQUIRE(ui_status(get("")) == 200);
  const std::size_t before = asked();
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    CAPTURE(method);
    const std::string answer = request(method, folder, cookie + "Content-Length: 0\r\n", host);
    CHECK(ui_status(answer) == 405);
    CHECK_THAT(answer, contains("Allow: GET, HEAD\r\n"));
  }
  CHECK(asked() == before);
  const std::string head = request("HEAD", folder, cookie, host);
  CHECK(ui_status(head) == 200);
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(ui_status(send("nonsense\r\n\r\n")) == 400);
  CHECK_THAT(get("style.css"), contains("Content-Type: text/css"));
  CHECK_THAT(get("script.js"), contains("Content-Type: text/javascript"));
}

TEST_CASE_METHOD(UiFixture, "the list has jobs of all kinds, and not the JobSet of a TrainJob") {
  open();
  api.on("GET", kTrainers)
      .answer(200, ui_list(ui_trainjob("mine",
                                       R"({"phase":"Running","reason":")" + kMarkup +
                                           R"(","nodes":{"total":2,"ready":1,
          "summary":"1/2"},"trainerStatus":{"progressPercentage":40,
          "lastUpdatedTime":"2026-08-20T10:00:00Z"}})",
                                       R"(,"labels":{"kueue.x-k8s.io/queue-name":"gpus"})")))
      .always();
  const std::string owner =
      R"(,"ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
          "name":"mine","uid":"u-mine","controller":true}])";
  const auto jobset = [](const std::string& name, const std::string& more) {
    return R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":")" +
           name + R"(","namespace":"ns")" + more +
           R"(},"spec":{"replicatedJobs":[{"name":"w","replicas":3,"template":{"spec":{
           "parallelism":2,"template":{"spec":{"containers":[]}}}}}]}})";
  };
  api.on("GET", kSets)
      .answer(200, ui_list(jobset("part", owner) + "," + jobset("plain", "")))
      .always();
  api.on("GET", kPyTorch)
      .answer(200, ui_list(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{
          "name":"older","namespace":"ns"},"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2,
          "template":{"spec":{"containers":[]}}}}}})"))
      .always();
  serve_nothing_else();
  const std::string page = get("");
  CAPTURE(page);
  CHECK(ui_status(page) == 200);
  for (const std::string& part :
       {std::string("Jobs of namespace ns"), std::string(">mine</a>"), std::string("<td>1/2</td>"),
        std::string("<td>gpus</td>"), std::string("<td>40 %</td>"), std::string(">plain</a>"),
        std::string("<td>6</td>"), std::string("<td>PyTorchJob</td>"), std::string(">older</a>"),
        std::string("<td>0/2</td>"), kMarkupShown})
    CHECK_THAT(page, contains(part));
  CHECK(page.find(">part</a>") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  const std::size_t before = asked();
  const std::string part = get("?part=yes&search=older");
  CHECK(asked() == before);  // the answer is kept for a moment
  CHECK(part.find("<html") == std::string::npos);
  CHECK(part.find(">mine</a>") == std::string::npos);
  CHECK_THAT(part, contains(">older</a>"));
  clock.advance(std::chrono::seconds(2));
  get("?part=yes");
  CHECK(asked() > before);
}

TEST_CASE_METHOD(UiFixture, "what cannot be listed is said in a sentence, and the rest is shown") {
  open();
  api.on("GET", kTrainers).answer(200, ui_list(ui_trainjob("mine", R"({"phase":"Running"})")));
  api.on("GET", kSets).answer(403, ui_refusal("Forbidden", 403));
  api.on("GET", kPyTorch).answer(403, ui_refusal("Forbidden", 403));
  api.on("GET", "/apis/kubeflow.org/v1/namespaces/ns/tfjobs")
      .answer(403, ui_refusal("Forbidden", 403));
  // The API server refuses also what it does not serve.
  api.on("GET", "/apis/jobset.x-k8s.io/v1alpha2/")
      .answer(200, R"({"resources":[{"name":"jobsets"}]})");
  api.on("GET", "/apis/kubeflow.org/v1/")
      .answer(200, R"({"resources":[{"name":"pytorchjobs"}]})")
      .always();
  const std::string page = get("");
  CAPTURE(page);
  CHECK(ui_status(page) == 200);
  CHECK_THAT(page, contains(">mine</a>"));
  CHECK_THAT(page, contains("You may not list jobsets.jobset.x-k8s.io, pytorchjobs.kubeflow.org in "
                            "namespace ns."));
  clock.advance(std::chrono::seconds(2));
  api.on("GET", kTrainers).answer(401, ui_refusal("Unauthorized", 401));
  const std::size_t before = asked();
  CHECK_THAT(get(""), contains("The API server does not answer as it should: no &lt;b&gt;access"));
  CHECK(asked() == before + 1);
  clock.advance(std::chrono::seconds(2));
  CHECK_THAT(get(""), contains("The cluster has no kind of job that this program knows."));
}

TEST_CASE_METHOD(UiFixture, "a page of a job has its cause, progress, pods, logs and annotations") {
  open();
  const auto at = [](int second, int percent) {
    return R"({"phase":"Failed","reason":"FailedJobs","message":"node-0 failed",
      "conditions":[{"type":"Failed","status":"True","reason":"r","message":"m"}],
      "trainerStatus":{"progressPercentage":)" +
           std::to_string(percent) + R"(,"lastUpdatedTime":"2026-08-20T10:00:0)" +
           std::to_string(second) + R"(Z"}})";
  };
  const std::string annotations =
      R"(,"annotations":{"note":")" + kMarkup +
      R"(","kubectl.kubernetes.io/last-applied-configuration":"{\"env\":\"password\"}"})";
  api.on("GET", kTrainers + "/j").answer(200, ui_trainjob("j", at(0, 10), annotations));
  api.on("GET", kTrainers + "/j").answer(200, ui_trainjob("j", at(9, 30), annotations));
  api.on("GET", kUiPods)
      .answer(200, ui_list(R"({"metadata":{"name":"j-node-0-0","namespace":"ns",
      "uid":"p","labels":{"jobset.sigs.k8s.io/replicatedjob-name":"node"}},"spec":{"nodeName":"n1"},
      "status":{"phase":"Failed","containerStatuses":[{"name":"node","restartCount":2,"state":{
      "terminated":{"exitCode":3,"reason":"Error"}}}]}})"))
      .always();
  api.on("GET", kUiPods + "/j-node-0-0/log")
      .answer(200,
              "2026-08-20T10:00:00.000000000Z OSError: [Errno 37] No locks available\n"
              "2026-08-20T10:00:01.000000000Z " +
                  kMarkup + "\x1b[2J\n")
      .always();
  const std::string page = get(kJobQuery + "name=j");
  CAPTURE(page);
  CHECK(ui_status(page) == 200);
  for (const std::string& part :
       {std::string("<h1>TrainJob ns/j</h1>"), std::string("a file lock fails on a network"),
        std::string("<strong>10 %</strong>"), std::string("exit code 3 (Error)"),
        std::string("<td>n1</td>"), std::string("[node-0] OSError: [Errno 37] No locks"),
        "[node-0] " + kMarkupShown + "\\x1b[2J", "class=\"lines\">" + kMarkupShown})
    CHECK_THAT(page, contains(part));
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("password") == std::string::npos);
  const std::string later = get(kJobQuery + "name=j&part=yes&pod=j-node-0-0");
  CAPTURE(later);
  CHECK_THAT(later, contains("Log of j-node-0-0"));
  CHECK_THAT(later, contains("0.0,108.0 600.0,84.0 "));  // the curve has moved
}

TEST_CASE_METHOD(UiFixture,
                 "a job that cannot be read is a sentence, with the status of the answer") {
  open();
  struct Case {
    std::string query;
    int status;
    std::string said;
  };
  api.on("GET", kTrainers + "/no").answer(403, ui_refusal("Forbidden", 403));
  api.on("GET", kTrainers + "/odd").answer(400, ui_refusal("BadRequest", 400));
  const Case cases[] = {
      {kJobQuery + "name=gone", 404, "TrainJob ns/gone does not exist"},
      {kJobQuery + "name=no", 403, "You may not read TrainJob ns/no: no &lt;b&gt;access"},
      {kJobQuery + "name=odd", 502, "TrainJob ns/odd cannot be read"},
      {kJobQuery + "name=", 404, "no such kind of job"},
      {"job?resource=secrets.v1.&namespace=ns&name=x", 404, "no such kind of job"},
      {"job?resource=trainjobs.v1alpha1.trainer.kubeflow.org&namespace=kube-system&name=x", 404,
       "This program was started for namespace ns."},
      {"job", 404, "no such kind of job"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.query);
    const std::string page = get(c.query);
    CHECK(ui_status(page) == c.status);
    CHECK_THAT(page, contains(c.said));
  }
}

TEST_CASE_METHOD(UiFixture, "a user without rights on pods sees the state, and what is missing") {
  open();
  api.on("GET", kTrainers + "/j").answer(200, ui_trainjob("j", R"({"phase":"Pending",
      "reason":"WaitingForNodes","message":"no node fits"})"));
  api.on("GET", kUiPods).answer(403, ui_refusal("Forbidden", 403));
  const std::string page = get(kJobQuery + "name=j");
  CHECK(ui_status(page) == 200);
  CHECK_THAT(page, contains("no node fits"));
  CHECK_THAT(page, contains("Not everything can be read: no &lt;b&gt;access"));
}
