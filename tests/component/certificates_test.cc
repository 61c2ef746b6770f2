// The Secret, the caBundle and the webhook configurations, against a scripted API server.
#include <map>
#include <set>

#include "controller/admission/certificate_keeper.hh"
#include "controller/admission/webhook_registrar.hh"
#include "controller/kinds/registry.hh"
#include "kube/client/task_group.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kSecret = "/api/v1/namespaces/kubeflow-system/secrets/cert";
const std::string kSecrets_ = "/api/v1/namespaces/kubeflow-system/secrets";
const std::vector<std::string> kHosts = {"manager.kubeflow-system.svc"};

// The webhooks that production publishes, with or without those of pods.
std::vector<Webhook> webhooks(bool with_pods) {
  KindOptions options;
  options.configuration.webhook.exclusivePlacement = with_pods;
  return published_webhooks(production_registry(options));
}

struct CertificatesFixture : kube::test::ScriptedPeer {
  kube::TaskGroup tasks{io.get_executor(),
                        [](std::string_view, std::string_view what) { FAIL(std::string(what)); }};
  const test::CapturedErrors errors;
  kube::Log warnings{kube::LogLevel::kWarn, kube::Log::Format::kText};
  std::vector<kube::CertificateBundle> used;
  std::vector<std::string> trusted;  // before they are used
  std::unique_ptr<CertificateKeeper> keeper;

  ~CertificatesFixture() {
    tasks.cancel();
    kube::run_task(io, tasks.join());
  }

  kube::CertificateBundle make() {
    auto made = kube::make_certificates(kHosts, clock.now());
    REQUIRE(made);
    return *made;
  }
  std::string secret_of(const kube::CertificateBundle& bundle, const std::string& version = "7") {
    return kube::print_json(
        Json::object({{"metadata", Json::object({{"name", "cert"}, {"resourceVersion", version}})},
                      {"data", kube::certificate_secret_data(bundle)}}));
  }
  kube::Task<kube::Result<void>> use(kube::CertificateBundle bundle) {
    used.push_back(std::move(bundle));
    co_return kube::Result<void>();
  }
  void keep(CertificateOptions options = with_secret()) {
    keeper = std::make_unique<CertificateKeeper>(
        io, client, warnings, std::move(options),
        [this](kube::CertificateBundle bundle) { return use(std::move(bundle)); },
        [this](const std::string& ca_pem) { trusted.push_back(ca_pem); });
    tasks.spawn("keeper", keeper->run());
  }
  // Syncs once with a Secret that another client fills.
  void follow(const Json& secret) {
    api.on("GET", kSecret).answer(200, kube::print_json(secret)).always();
    CertificateOptions options = with_secret();
    options.is_made_here = false;
    keep(std::move(options));
    keeper->lead();
    run_until_idle(1);
  }
  static CertificateOptions with_secret() {
    CertificateOptions options;
    options.hosts = kHosts;
    options.secret = {"kubeflow-system", "cert"};
    return options;
  }
  // Runs until `requests` were sent and all tasks wait for the clock.
  void run_until_idle(std::size_t requests) {
    REQUIRE(
        kube::run_until(io, [&] { return api.log().size() >= requests && clock.timers() > 0; }));
    CHECK(api.log().size() == requests);
  }
};

}  // namespace

TEST_CASE_METHOD(
    CertificatesFixture,
    "a replica that does not lead serves the Secret's certificates and notices changes") {
  const kube::CertificateBundle first = make();
  const kube::CertificateBundle second = make();
  api.on("GET", kSecret).answer(200, secret_of(first)).times(2);
  api.on("GET", kSecret).answer(200, secret_of(second));
  keep();
  run_until_idle(1);
  REQUIRE(used.size() == 1);
  CHECK(used[0].certificate == first.certificate);
  clock.advance(std::chrono::seconds(30));
  run_until_idle(2);
  CHECK(used.size() == 1);
  clock.advance(std::chrono::seconds(30));
  run_until_idle(3);
  REQUIRE(used.size() == 2);
  CHECK(used[1].certificate == second.certificate);
}

TEST_CASE_METHOD(CertificatesFixture, "when certificates end") {
  const kube::CertificateBundle bundle = make();
  const auto days = [this](const std::string& pem) {
    const auto end = kube::expiry_of(pem);
    REQUIRE(end);
    return std::chrono::round<std::chrono::hours>(*end - clock.now()).count() / 24;
  };
  CHECK(days(bundle.certificate) == 365);
  CHECK(days(bundle.ca_certificate) == 3'650);
  CHECK_FALSE(kube::expiry_of("none"));
}

TEST_CASE_METHOD(CertificatesFixture,
                 "only the leader makes certificates, and at once when it becomes one") {
  api.on("POST", kSecrets_).reply([](const kube::ReceivedRequest& request) {
    return kube::ScriptedReply(201, request.body);
  });
  keep();
  run_until_idle(1);
  CHECK(used.empty());
  clock.advance(std::chrono::seconds(2));
  run_until_idle(2);
  CHECK(used.empty());
  keeper->lead();
  run_until_idle(4);
  REQUIRE(used.size() == 1);
  CHECK(kube::reason_to_renew(used[0], kHosts, clock.now()).empty());
  CHECK(api.lines() == std::vector<std::string>{"GET " + kSecret, "GET " + kSecret,
                                                "GET " + kSecret, api.lines().back()});
  const auto created = kube::parse_json(api.log().back().body);
  REQUIRE(created);
  CHECK(kube::read_certificate_secret(*created, true)->certificate == used[0].certificate);
}

TEST_CASE_METHOD(CertificatesFixture, "an empty Secret is filled, on the version that was read") {
  api.on("GET", kSecret)
      .answer(200, R"({"metadata":{"name":"cert","resourceVersion":"12"}})")
      .always();
  api.on("PATCH", kSecret)
      .answer(
          409,
          R"({"kind":"Status","status":"Failure","message":"changed","reason":"Conflict","code":409})");
  api.on("PATCH", kSecret).answer(200, "{}");
  keep();
  keeper->lead();
  run_until_idle(2);
  // Another client was faster: the Secret is read again after two seconds.
  CHECK(used.empty());
  clock.advance(std::chrono::seconds(2));
  run_until_idle(4);
  REQUIRE(used.size() == 1);
  const auto patch = kube::parse_json(api.log().back().body);
  CHECK(patch->find_path({"metadata", "resourceVersion"})->as_string() == "12");
  CHECK(kube::read_certificate_secret(*patch, true));
}

TEST_CASE_METHOD(CertificatesFixture, "the leader renews ahead of the end, with the same CA") {
  const kube::CertificateBundle first = make();
  api.on("GET", kSecret).answer(200, secret_of(first)).always();
  api.on("PATCH", kSecret).answer(200, "{}").always();
  keep();
  keeper->lead();
  run_until_idle(1);
  clock.advance(std::chrono::hours(24 * 280));
  run_until_idle(3);
  REQUIRE(used.size() == 2);
  CHECK(used[1].ca_certificate == first.ca_certificate);
  CHECK(used[1].certificate != first.certificate);
}

TEST_CASE_METHOD(CertificatesFixture,
                 "a Secret that is lost is written again with what clients trust") {
  const kube::CertificateBundle first = make();
  api.on("GET", kSecret).answer(200, secret_of(first));
  SECTION("because it was deleted") {
    api.on("POST", kSecrets_).reply([](const kube::ReceivedRequest& request) {
      return kube::ScriptedReply(201, request.body);
    });
  }
  SECTION("because it was emptied") {
    api.on("GET", kSecret)
        .answer(200, R"({"metadata":{"name":"cert","resourceVersion":"8"}})")
        .always();
    api.on("PATCH", kSecret).answer(200, "{}");
  }
  keep();
  run_until_idle(1);
  // A replica that does not lead goes on with what it has, and writes it once it leads.
  clock.advance(std::chrono::seconds(30));
  run_until_idle(2);
  keeper->lead();
  run_until_idle(4);
  REQUIRE(used.size() == 1);
  CHECK(trusted.empty());
  const auto written =
      kube::read_certificate_secret(*kube::parse_json(api.log().back().body), true);
  REQUIRE(written);
  CHECK(written->ca_certificate == first.ca_certificate);
  CHECK(written->ca_key.reveal() == first.ca_key.reveal());
  CHECK(written->certificate == first.certificate);
  CHECK(written->key.reveal() == first.key.reveal());
}

TEST_CASE_METHOD(CertificatesFixture,
                 "clients trust a new CA before it is used, and the old one beside it") {
  const kube::CertificateBundle oldest = make();
  clock.advance(std::chrono::hours(24 * 3'550));
  const auto renewed = kube::make_certificates(kHosts, clock.now(), &oldest);
  REQUIRE(renewed);
  REQUIRE(renewed->ca_certificate == oldest.ca_certificate);
  clock.advance(std::chrono::hours(24 * 15));
  api.on("GET", kSecret).answer(200, secret_of(*renewed)).always();
  api.on("PATCH", kSecret).answer(200, "{}");
  keep();
  keeper->lead();
  run_until_idle(1);
  REQUIRE(trusted.size() == 1);
  CHECK_THAT(trusted[0], kube::test::ends_with(oldest.ca_certificate));
  CHECK(trusted[0].size() > oldest.ca_certificate.size());
  // Pods have mounted a ConfigMap with the CA: the kubelet takes up to two and a half minutes.
  for (std::size_t requests = 2; requests <= 8; ++requests) {
    clock.advance(std::chrono::seconds(30));
    run_until_idle(requests);
    REQUIRE(used.size() == 1);
    CHECK(used[0].certificate == renewed->certificate);
  }
  clock.advance(std::chrono::seconds(30));
  run_until_idle(10);
  REQUIRE(used.size() == 2);
  CHECK(used[1].ca_certificate == trusted[0]);
  CHECK(trusted.size() == 1);
}

TEST_CASE_METHOD(CertificatesFixture, "a Secret that another client fills is never written") {
  kube::CertificateBundle external = make();
  Json secret = *kube::parse_json(secret_of(external));
  secret["data"].erase("ca.key");
  follow(secret);
  CHECK(used.size() == 1);
}

TEST_CASE_METHOD(CertificatesFixture,
                 "stored certificates are served while they cannot be renewed") {
  const kube::CertificateBundle first = make();
  clock.advance(std::chrono::hours(24 * 280));
  api.on("GET", kSecret).answer(200, secret_of(first)).always();
  SECTION("because that is not allowed") {
    for (const char* verb : {"PATCH", "PUT"})
      api.on(verb, kSecret)
          .answer(
              403,
              R"({"kind":"Status","status":"Failure","message":"not for you","reason":"Forbidden","code":403})")
          .times(3);
    api.on("PATCH", kSecret).answer(200, "{}");
    keep();
    keeper->lead();
    run_until_idle(3);
    for (const std::size_t requests : {6U, 9U}) {
      REQUIRE(used.size() == 1);
      CHECK(used[0].certificate == first.certificate);
      clock.advance(std::chrono::seconds(30));
      run_until_idle(requests);
    }
    CHECK(errors.count("not for you") == 1);
    clock.advance(std::chrono::seconds(30));
    run_until_idle(11);
    REQUIRE(used.size() == 2);
    CHECK(used[1].certificate != first.certificate);
  }
  SECTION("because the API server does not answer") {
    api.on("PATCH", kSecret).hold();
    keep();
    keeper->lead();
    REQUIRE(kube::run_until(io, [&] { return api.log().size() == 2; }));
    REQUIRE(used.size() == 1);
    CHECK(used[0].certificate == first.certificate);
  }
}

TEST_CASE_METHOD(CertificatesFixture,
                 "certificates that clients would refuse are renewed before they are served") {
  const kube::CertificateBundle first = make();
  clock.advance(std::chrono::hours(24 * 366));
  api.on("GET", kSecret).answer(200, secret_of(first)).always();
  api.on("PATCH", kSecret).answer(200, "{}");
  keep();
  keeper->lead();
  run_until_idle(2);
  REQUIRE(used.size() == 1);
  CHECK(used[0].certificate != first.certificate);
}

TEST_CASE_METHOD(CertificatesFixture, "a Secret that another client fills may have no CA") {
  Json secret = *kube::parse_json(secret_of(make()));
  secret["data"].erase("ca.crt");
  secret["data"].erase("ca.key");
  follow(secret);
  REQUIRE(used.size() == 1);
  CHECK(used[0].ca_certificate.empty());
  CHECK(used[0].trusted() == used[0].certificate);
}

TEST_CASE_METHOD(CertificatesFixture,
                 "an error of another client's Secret is logged, and again after some minutes") {
  const kube::CertificateBundle whole = make();
  Json secret = *kube::parse_json(secret_of(whole));
  secret["data"].erase("tls.key");
  CertificateOptions options = with_secret();
  options.is_made_here = false;
  keep(std::move(options));
  keeper->lead();
  run_until_idle(1);
  CHECK(errors.count("Secret kubeflow-system/cert") == 1);
  clock.advance(std::chrono::seconds(2));
  run_until_idle(2);
  CHECK(errors.count("Secret kubeflow-system/cert") == 1);

  api.on("GET", kSecret).answer(200, kube::print_json(secret)).times(3);
  for (const std::size_t requests : {3U, 4U}) {
    clock.advance(std::chrono::seconds(2));
    run_until_idle(requests);
    CHECK(errors.count("tls.key") == 1);
  }
  clock.advance(std::chrono::minutes(5));
  run_until_idle(5);
  CHECK(errors.count("tls.key") == 2);
  CHECK(used.empty());

  api.on("GET", kSecret).answer(200, secret_of(whole)).always();
  clock.advance(std::chrono::seconds(2));
  run_until_idle(6);
  CHECK(used.size() == 1);
}

TEST_CASE_METHOD(CertificatesFixture,
                 "a task that waits for the first certificate is woken by it") {
  bool is_awake = false;
  keep();
  tasks.spawn("waits", [](CertificateKeeper& all, bool& done) -> kube::Task<void> {
    co_await all.wait_for_certificate();
    done = true;
  }(*keeper, is_awake));
  run_until_idle(1);
  CHECK_FALSE(is_awake);
  api.on("GET", kSecret).answer(200, secret_of(make())).always();
  clock.advance(std::chrono::seconds(2));
  run_until_idle(2);
  CHECK(kube::run_until(io, [&] { return is_awake; }));
}

TEST_CASE_METHOD(CertificatesFixture, "without a Secret the certificates are this process's own") {
  CertificateOptions options;
  options.hosts = {"10.0.0.1"};
  keep(std::move(options));
  run_until_idle(0);
  REQUIRE(used.size() == 1);
  CHECK(kube::reason_to_renew(used[0], {"10.0.0.1"}, clock.now()).empty());
  clock.advance(std::chrono::hours(24 * 300));
  run_until_idle(0);
  CHECK(used.size() == 2);
}

TEST_CASE_METHOD(CertificatesFixture,
                 "this controller's CA is set in its own configurations whenever they lack it") {
  const std::string mutating =
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  const std::string validating =
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const auto configuration = [](const std::string& name, const std::string& ca) {
    return R"({"metadata":{"name":")" + name +
           R"(","uid":"u","resourceVersion":"3"},"webhooks":[{"name":"w","clientConfig":{)" +
           (ca.empty() ? "" : R"("caBundle":")" + kube::base64_encode(ca) + "\"") + "}}]}";
  };
  const auto list = [](const std::string& items) {
    return R"({"metadata":{"resourceVersion":"3"},"items":[)" + items + "]}";
  };
  api.on("GET", mutating)
      .answer(200, list(configuration("defaulter.trainer.kubeflow.org", "") + "," +
                        configuration("jobset-mutating-webhook-configuration", "")));
  api.on("GET", mutating)
      .stream({R"({"type":"MODIFIED","object":)" +
               configuration("defaulter.trainer.kubeflow.org", "theirs") + "}\n"})
      .stay_open();
  api.on("GET", validating)
      .answer(200, list(configuration("validator.trainer.kubeflow.org", "CA")));
  api.on("GET", validating).stream({}).stay_open();
  api.on("PATCH", mutating + "/defaulter.trainer.kubeflow.org")
      .answer(200, configuration("defaulter.trainer.kubeflow.org", "CA"))
      .always();
  CaInjector injector(io, client, configuration_names(production_registry(KindOptions())), log);
  injector.set_ca("CA");
  tasks.spawn("injector", injector.run());
  const auto patches = [&] {
    std::vector<std::string> paths;
    for (const auto& request : api.log()) {
      if (request.method == "PATCH") paths.push_back(request.path);
    }
    return paths;
  };
  REQUIRE(kube::run_until(io, [&] { return !patches().empty(); }));
  for (const std::string& path : patches())
    CHECK(path == mutating + "/defaulter.trainer.kubeflow.org");
  CHECK(api.log().back().headers.count("content-type") <= 1);
  // Another CA: both are patched.
  api.on("PATCH", validating + "/validator.trainer.kubeflow.org")
      .answer(200, configuration("validator.trainer.kubeflow.org", "CA2"))
      .always();
  injector.set_ca("CA2");
  CHECK(kube::run_until(io, [&] {
    const auto paths = patches();
    return std::find(paths.begin(), paths.end(), validating + "/validator.trainer.kubeflow.org") !=
           paths.end();
  }));
  tasks.cancel();
  kube::run_task(io, tasks.join());
}

TEST_CASE_METHOD(CertificatesFixture,
                 "with the rights of the Training Operator, what may not be patched is put") {
  const char* const forbidden = R"({"kind":"Status","reason":"Forbidden","code":403})";
  const std::string configurations =
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const std::string configuration = configurations + "/validator.training-operator.kubeflow.org";
  const auto webhooks_with = [](const std::string& ca) {
    return R"({"metadata":{"name":"validator.training-operator.kubeflow.org","resourceVersion":"3"},
        "webhooks":[{"name":"w","clientConfig":{)" +
           (ca.empty() ? "" : R"("caBundle":")" + kube::base64_encode(ca) + "\"") + "}}]}";
  };
  api.on("GET", kSecret)
      .answer(200, R"({"metadata":{"name":"cert","resourceVersion":"12"},"type":"Opaque"})")
      .always();
  api.on("GET", configurations)
      .answer(200, R"({"metadata":{"resourceVersion":"3"},"items":[)" + webhooks_with("") + "]}");
  api.on("GET", configurations).stream({}).stay_open();
  std::map<std::string, Json> put;
  for (const std::string& path : {kSecret, configuration}) {
    api.on("PATCH", path).always().answer(403, forbidden);
    api.on("PUT", path).always().reply([&put](const kube::ReceivedRequest& request) {
      put[request.path] = *kube::parse_json(request.body);
      return kube::ScriptedReply(200, request.body);
    });
  }
  keep();
  keeper->lead();
  CaInjector injector(io, client, {"validator.training-operator.kubeflow.org"}, log, false);
  injector.set_ca("CA");
  tasks.spawn("injector", injector.run());
  REQUIRE(kube::run_until(io, [&] { return put.size() == 2; }));
  CHECK(put[kSecret].get_string("type") == "Opaque");
  CHECK(put[kSecret].get("metadata").get_string("resourceVersion") == "12");
  CHECK(kube::read_certificate_secret(put[kSecret], true));
  CHECK(ca_bundle_patch(put[configuration], "CA").empty());
  for (const auto& request : api.log()) CHECK_THAT(request.path, !Catch::Contains("mutating"));
  tasks.cancel();
  kube::run_task(io, tasks.join());
}

TEST_CASE_METHOD(CertificatesFixture,
                 "outside the cluster the configurations exist while the process runs") {
  api.on("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")
      .answer(201, R"({"status":{"userInfo":{"username":"kubernetes-admin"}}})");
  const std::string base = "/apis/admissionregistration.k8s.io/v1/";
  const std::vector<std::string> objects = {
      base + "mutatingwebhookconfigurations/defaulter.trainer.kubeflow.org",
      base + "validatingwebhookconfigurations/validator.trainer.kubeflow.org",
      base + "mutatingwebhookconfigurations/jobset.trainer.kubeflow.org",
      base + "validatingwebhookconfigurations/jobset.trainer.kubeflow.org"};
  for (const std::string& path : objects) {
    api.on("PATCH", path).answer(200, "{}");
    api.on("DELETE", path).answer(200, "{}");
  }
  WebhookRegistrar registrar(client, log, "https://10.88.0.1:9443", webhooks(false));
  REQUIRE(kube::run_task(io, registrar.publish("CA")));
  REQUIRE(api.log().size() == 5);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& request = api.log()[i + 1];
    CHECK(request.method == "PATCH");
    CHECK(request.path == objects[i]);
    CHECK(request.body.find("https://10.88.0.1:9443/") != std::string::npos);
  }
  CHECK(api.log()[3].body.find("kubernetes-admin") != std::string::npos);
  kube::run_task(io, registrar.withdraw());
  REQUIRE(api.log().size() == 9);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    CHECK(api.log()[i + 5].method == "DELETE");
    CHECK(api.log()[i + 5].path == objects[i]);
  }
}

TEST_CASE_METHOD(CertificatesFixture,
                 "configurations that are withdrawn while they are published are removed") {
  api.on("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews").answer(201, "{}").always();
  const std::string base = "/apis/admissionregistration.k8s.io/v1/";
  std::set<std::string> existing;
  for (const std::string kind : {"mutating", "validating"}) {
    for (const std::string name : {"defaulter", "validator", "jobset"}) {
      const std::string path =
          base + kind + "webhookconfigurations/" + name + ".trainer.kubeflow.org";
      api.on("PATCH", path).always().reply([&existing](const kube::ReceivedRequest& request) {
        existing.insert(request.path);
        return kube::ScriptedReply(200, "{}");
      });
      api.on("DELETE", path).always().reply([&existing](const kube::ReceivedRequest& request) {
        return kube::ScriptedReply(existing.erase(request.path) ? 200 : 404, "{}");
      });
    }
  }
  WebhookRegistrar registrar(client, log, "https://10.88.0.1:9443", webhooks(false));
  tasks.spawn("publish", [](WebhookRegistrar& all) -> kube::Task<void> {
    (void)co_await all.publish("CA");
  }(registrar));
  REQUIRE(kube::run_until(io, [&] { return existing.size() == 1; }));
  kube::run_task(io, registrar.withdraw());
  CHECK(existing.empty());
  // A certificate that is renewed later does not publish them again.
  REQUIRE(kube::run_task(io, registrar.publish("next")));
  CHECK(existing.empty());
}

TEST_CASE_METHOD(CertificatesFixture, "nothing is removed where nothing was published") {
  WebhookRegistrar registrar(client, log, "https://10.88.0.1:9443", webhooks(false));
  kube::run_task(io, registrar.withdraw());
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(CertificatesFixture, "the webhooks of pods are made only where they are wanted") {
  api.on("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")
      .answer(201, R"({"status":{"userInfo":{"username":"kubernetes-admin"}}})");
  const std::string base = "/apis/admissionregistration.k8s.io/v1/";
  const auto count = [this](const std::string& line) {
    std::size_t found = 0;
    for (const auto& request : api.log()) found += request.method + " " + request.path == line;
    return found;
  };
  for (const std::string kind : {"mutating", "validating"}) {
    for (const std::string name : {"defaulter", "validator", "jobset", "pods.jobset"}) {
      const std::string path =
          base + kind + "webhookconfigurations/" + name + ".trainer.kubeflow.org";
      api.on("PATCH", path).answer(200, "{}");
      api.on("DELETE", path).answer(200, "{}");
    }
  }
  WebhookRegistrar registrar(client, log, "https://10.88.0.1:9443", webhooks(true));
  REQUIRE(kube::run_task(io, registrar.publish("CA")));
  kube::run_task(io, registrar.withdraw());
  for (const std::string kind : {"mutating", "validating"}) {
    const std::string path = base + kind + "webhookconfigurations/pods.jobset.trainer.kubeflow.org";
    CHECK(count("PATCH " + path) == 1);
    CHECK(count("DELETE " + path) == 1);
  }
}
