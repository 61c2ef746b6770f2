#include "tests/component/admission_fixture.hh"

#include "controller/kinds/registry.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "tests/support/catch.hh"

namespace trainer::test {

using kube::Json;

std::string review_of(const Json& object, const Json& old_object) {
  const bool is_update = !old_object.is_null();
  Json request = Json::object({
      {"uid", "review-1"},
      {"operation", is_update ? "UPDATE" : "CREATE"},
      {"kind",
       Json::object({{"group", "g"}, {"version", "v1"}, {"kind", object.get_string("kind")}})},
      {"resource", Json::object({{"group", "g"}, {"version", "v1"}, {"resource", "r"}})},
      {"namespace", "team-a"},
      {"name", "j"},
      {"object", object},
      {"oldObject", old_object},
      {"userInfo", Json::object({{"username", "someone"}})},
  });
  return kube::print_json(Json::object({{"apiVersion", "admission.k8s.io/v1"},
                                        {"kind", "AdmissionReview"},
                                        {"request", std::move(request)}}));
}

kube::CertificateBundle certificates() {
  auto made = kube::make_certificates({"127.0.0.1"}, kube::SystemClock().now());
  REQUIRE(made);
  return *made;
}

AdmissionFixture::AdmissionFixture(const KindOptions& kinds, ServingOptions options) {
  options.make_transport = [config = api.config()](kube::asio::io_context& on,
                                                   const kube::TransportLimits& limits) {
    return kube::make_transport(on, config, limits);
  };
  options.address = "127.0.0.1";
  options.webhook_port = 0;
  for (const KindRegistration& kind : production_registry(kinds)) {
    for (const WebhookHandler& each : kind.admission.handlers) options.handlers.push_back(each);
  }
  options.on_review = [this](std::string_view, std::string_view outcome, auto) {
    const std::lock_guard lock(mutex);
    ++outcomes[std::string(outcome)];
  };
  serving = std::make_unique<Serving>(std::move(options), state, log);
  CHECK_FALSE(serving->is_listening());
  REQUIRE(kube::run_task(io, serving->set_certificates(bundle)));
  REQUIRE(serving->is_listening());
  connect(bundle);
}

void AdmissionFixture::connect(const kube::CertificateBundle& trusted, kube::ClientConfig config) {
  config.server = "https://127.0.0.1:" + std::to_string(serving->webhook_port());
  config.ca_pem = trusted.ca_certificate;
  transport = kube::make_transport(io, config, kube::TransportLimits());
}

kube::Result<kube::HttpResponse> AdmissionFixture::send(const std::string& method,
                                                        std::string_view path, std::string body) {
  kube::HttpRequest request(method, std::string(path));
  request.content_type = "application/json";
  request.body = std::move(body);
  return kube::run_task(io, transport->send(std::move(request)));
}

Json AdmissionFixture::ask(std::string_view path, const std::string& body) {
  const auto answer = send("POST", std::string(path) + "?timeout=10s", body);
  REQUIRE(answer);
  REQUIRE(answer->status == 200);
  const auto review = kube::parse_json(answer->body);
  REQUIRE(review);
  CHECK(review->get_string("kind") == "AdmissionReview");
  const Json* response = review->find("response");
  REQUIRE(response != nullptr);
  CHECK(response->get_string("uid") == "review-1");
  return *response;
}

}  // namespace trainer::test
