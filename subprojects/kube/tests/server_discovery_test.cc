#include "kube/model/json_text.hh"
#include "kube/server/access_review.hh"
#include "kube/server/discovery.hh"
#include "kube/server/openapi.hh"
#include "kube/tests/catch.hh"

namespace {

using kube::Json;
using kube::server::answer_discovery;
using kube::server::Request;
using kube::server::ServedKind;
using kube::server::ServedKinds;

ServedKind kind_of(kube::Resource resource, std::string singular) {
  ServedKind kind;
  kind.resource = std::move(resource);
  kind.singular = std::move(singular);
  return kind;
}

ServedKinds kinds() {
  ServedKind pods = kind_of({"", "v1", "pods", "Pod", true}, "pod");
  pods.short_names = {"po"};
  pods.categories = {"all"};
  pods.has_status = true;
  ServedKind nodes = kind_of({"", "v1", "nodes", "Node", false}, "node");
  ServedKind widgets = kind_of({"acme.io", "v2", "widgets", "Widget", true}, "widget");
  widgets.scale = kube::server::ScalePaths{".spec.replicas", ".status.replicas", ""};
  widgets.schema = std::make_shared<const Json>(*kube::parse_json(
      R"({"type": "object", "properties": {"spec": {"type": "object", "properties":
          {"size": {"$ref": "#/Size", "description": "How large it is."}}}}})"));
  widgets.target_of = [](const Json& schema) -> const Json* {
    static const Json size = Json::object({{"type", "integer"}});
    return schema.get_string("$ref") == "#/Size" ? &size : nullptr;
  };
  ServedKind old = kind_of({"acme.io", "v1", "widgets", "Widget", true}, "widget");
  return {pods, nodes, widgets, old};
}

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

Json get(std::string_view path, std::string_view accept = "application/json") {
  Request request;
  request.target = path;
  request.accept = accept;
  const auto response = answer_discovery(kinds(), request, path, {});
  if (!response) return {};
  CHECK(response->status == 200);
  return *kube::parse_json(response->body);
}

}  // namespace

TEST_CASE("the version and the health of a server") {
  CHECK(get("/version").get_string("minor") == "34");
  CHECK(get("/version").get_string("gitVersion") == "v1.34.4");
  Request request;
  for (const char* path : {"/healthz", "/readyz", "/livez"}) {
    const auto response = answer_discovery({}, request, path, {});
    REQUIRE(response);
    CHECK(response->body == "ok");
    CHECK(response->content_type.starts_with("text/plain"));
  }
  CHECK_FALSE(answer_discovery({}, request, "/", {}));
  CHECK_FALSE(answer_discovery({}, request, "/openapi/v1", {}));
  request.method = "POST";
  CHECK_FALSE(answer_discovery({}, request, "/version", {}));
}

TEST_CASE("aggregated discovery has the type that was asked for") {
  Request request;
  request.accept = kAggregated;
  const auto response = answer_discovery(kinds(), request, "/apis", {});
  REQUIRE(response);
  CHECK(response->content_type ==
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  const Json list = *kube::parse_json(response->body);
  CHECK(list.get_string("kind") == "APIGroupDiscoveryList");
  CHECK(list.get_string("apiVersion") == "apidiscovery.k8s.io/v2");
  REQUIRE(list.get("items").size() == 1);
  const Json& group = list.get("items").as_array()[0];
  CHECK(group.get("metadata").get_string("name") == "acme.io");
  // The first version is the preferred one.
  REQUIRE(group.get("versions").size() == 2);
  const Json& version = group.get("versions").as_array()[0];
  CHECK(version.get_string("version") == "v2");
  CHECK(version.get_string("freshness") == "Current");
  const Json& widget = version.get("resources").as_array()[0];
  CHECK(widget.get_string("resource") == "widgets");
  CHECK(widget.get_string("scope") == "Namespaced");
  CHECK(widget.get_string("singularResource") == "widget");
  CHECK(widget.get("responseKind").get_string("kind") == "Widget");
  CHECK(widget.get("verbs").size() == 8);
  const Json& scale = widget.get("subresources").as_array()[0];
  CHECK(scale.get_string("subresource") == "scale");
  CHECK(scale.get("responseKind").get_string("group") == "autoscaling");
}

TEST_CASE("the core group has an address of its own") {
  const Json list = get("/api", kAggregated);
  REQUIRE(list.get("items").size() == 1);
  const Json& resources =
      list.get("items").as_array()[0].get("versions").as_array()[0].get("resources");
  REQUIRE(resources.size() == 2);
  const Json& pods = resources.as_array()[0];
  CHECK(kube::print_json(pods.get("shortNames")) == R"(["po"])");
  CHECK(kube::print_json(pods.get("categories")) == R"(["all"])");
  REQUIRE(pods.get("subresources").size() == 2);
  CHECK(pods.get("subresources").as_array()[0].get_string("subresource") == "log");
  CHECK(resources.as_array()[1].get_string("scope") == "Cluster");
}

TEST_CASE("the older lists, for clients that ask for JSON alone") {
  CHECK(kube::print_json(get("/api").get("versions")) == R"(["v1"])");
  const Json groups = get("/apis");
  CHECK(groups.get_string("kind") == "APIGroupList");
  REQUIRE(groups.get("groups").size() == 1);
  const Json group = get("/apis/acme.io");
  CHECK(group.get_string("kind") == "APIGroup");
  CHECK(group.get("preferredVersion").get_string("groupVersion") == "acme.io/v2");
  const Json resources = get("/api/v1");
  CHECK(resources.get_string("groupVersion") == "v1");
  std::vector<std::string> names;
  for (const Json& resource : resources.get_array("resources"))
    names.emplace_back(resource.get_string("name"));
  CHECK(names == std::vector<std::string>{"pods", "pods/log", "pods/status", "nodes"});
  CHECK(get("/apis/acme.io/v1/").get_string("groupVersion") == "acme.io/v1");
  const Json scaled = get("/apis/acme.io/v2").get("resources").as_array()[1];
  CHECK(scaled.get_string("name") == "widgets/scale");
  CHECK(scaled.get_string("group") == "autoscaling");
  for (const char* path : {"/apis/none.io", "/apis/acme.io/v3", "/api/v2", "/apiserver"})
    CHECK(get(path).is_null());
}

TEST_CASE("each OpenAPI document is listed with the hash of its text") {
  const Json paths = get("/openapi/v3").get("paths");
  REQUIRE(paths.size() == 3);
  const std::string url(paths.get("apis/acme.io/v2").get_string("serverRelativeURL"));
  CHECK(url.starts_with("/openapi/v3/apis/acme.io/v2?hash="));
  CHECK(paths.get("apis/acme.io/v1").get_string("serverRelativeURL") != url);
  CHECK(paths.find("api/v1") != nullptr);
  CHECK(get("/openapi/v3/apis/none.io/v1").is_null());
}

TEST_CASE("an OpenAPI document says what kubectl looks for") {
  const Json document = get("/openapi/v3/apis/acme.io/v2");
  const Json& item =
      document.get("paths").get("/apis/acme.io/v2/namespaces/{namespace}/widgets/{name}");
  const std::string kind = R"({"group":"acme.io","kind":"Widget","version":"v2"})";
  // `explain` finds the kind by the path; `apply` by the operation.
  CHECK(kube::print_json(item.get("get").get("x-kubernetes-group-version-kind")) == kind);
  const Json& patch = item.get("patch");
  CHECK(kube::print_json(patch.get("x-kubernetes-group-version-kind")) == kind);
  bool is_validating = false;
  for (const Json& parameter : patch.get_array("parameters"))
    if (parameter.get_string("name") == "fieldValidation" && parameter.get_string("in") == "query")
      is_validating = true;
  CHECK(is_validating);
  const Json& forms = patch.get("requestBody").get("content");
  CHECK(forms.find("application/merge-patch+json") != nullptr);
  CHECK(forms.find("application/strategic-merge-patch+json") == nullptr);

  const Json& schema = document.get("components").get("schemas").get("io.acme.v2.Widget");
  CHECK(kube::print_json(schema.get("x-kubernetes-group-version-kind")) == "[" + kind + "]");
  CHECK(kube::print_json(schema.get("properties").get("spec").get("properties").get("size")) ==
        R"({"description":"How large it is.","type":"integer"})");
  CHECK(schema.get("properties").find("metadata") != nullptr);
}

TEST_CASE("version 2 of OpenAPI has no types: kubectl then says that there is no such kind") {
  const auto of = [](std::string accept) {
    Request request;
    request.accept = std::move(accept);
    return *answer_discovery({}, request, "/openapi/v2", {});
  };
  const auto coded = of("application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
  CHECK(coded.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  CHECK(coded.body == "\n\0032.0");
  CHECK(kube::parse_json(of("application/json").body)->get_string("swagger") == "2.0");
}

TEST_CASE("kinds without a namespace and without a schema have documents, too") {
  const Json document = get("/openapi/v3/api/v1");
  CHECK(document.get("paths").find("/api/v1/nodes/{name}") != nullptr);
  const Json& schemas = document.get("components").get("schemas");
  const Json* node = schemas.find("io.k8s.api.core.v1.Node");
  REQUIRE(node != nullptr);
  CHECK(node->get_bool("x-kubernetes-preserve-unknown-fields"));
}

TEST_CASE("reviews of the client's own rights") {
  using kube::server::answer_review;
  const Json body = *kube::parse_json(R"({"spec": {"resourceAttributes": {"verb": "get"}}})");
  const auto allowed =
      answer_review("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body);
  REQUIRE(allowed);
  CHECK(allowed->status == 201);
  const Json answer = *kube::parse_json(allowed->body);
  CHECK(answer.get_string("kind") == "SelfSubjectAccessReview");
  CHECK(answer.get("spec") == body.get("spec"));
  CHECK(answer.get("status").get_bool("allowed"));
  const auto user = answer_review("/apis/authentication.k8s.io/v1/selfsubjectreviews", {});
  REQUIRE(user);
  CHECK(kube::parse_json(user->body)->get_path({"status", "userInfo"}).get_string("username") ==
        "local");
  const auto rules = answer_review("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {});
  REQUIRE(rules);
  CHECK(kube::parse_json(rules->body)->get("status").get("resourceRules").size() == 1);
  CHECK_FALSE(answer_review("/apis/authorization.k8s.io/v1/subjectaccessreviews", body));
}
