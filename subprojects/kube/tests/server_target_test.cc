#include "kube/server/selector.hh"
#include "kube/server/target.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::server::parse_target;
using kube::server::Selector;
using kube::server::Target;
using kube::test::json;
using kube::test::World;

TEST_CASE("target: paths of objects, collections and subresources") {
  const World world;
  struct Case {
    std::string_view path, kind, ns, name, subresource;
  };
  const Case cases[] = {
      {"/api/v1/configmaps", "ConfigMap", "", "", ""},
      {"/api/v1/namespaces/n/configmaps", "ConfigMap", "n", "", ""},
      {"/api/v1/namespaces/n/configmaps/a", "ConfigMap", "n", "a", ""},
      {"/api/v1/namespaces/n/configmaps/a%2Eb", "ConfigMap", "n", "a.b", ""},
      {"/api/v1/namespaces", "Namespace", "", "", ""},
      {"/api/v1/namespaces/n", "Namespace", "", "n", ""},
      {"/api/v1/namespaces/n/status", "Namespace", "", "n", "status"},
      {"/api/v1/namespaces/n/finalize", "Namespace", "", "n", "finalize"},
      {"/apis/example.com/v1/namespaces/n/widgets/w/scale", "Widget", "n", "w", "scale"},
      {"/api/v1/namespaces/n/pods/p/log?follow=true", "Pod", "n", "p", "log"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.path);
    const Target target = parse_target(world.kinds, c.path);
    REQUIRE(target.kind);
    CHECK(target.kind->resource.kind == c.kind);
    CHECK(target.key.ns == c.ns);
    CHECK(target.key.name == c.name);
    CHECK(target.subresource == c.subresource);
  }
  for (const auto* path :
       {"/", "/api", "/api/v1", "/apis/example.com/v1", "/apis/example.com/v2/widgets",
        "/api/v1/widgets", "/api/v1/configmaps/a", "/api/v1/namespaces/n/namespaces/m",
        "/api/v1/namespaces/n/pods/p/log/more", "/version"}) {
    CAPTURE(path);
    CHECK(parse_target(world.kinds, path).kind == nullptr);
  }
}

TEST_CASE("target: queries") {
  using kube::server::Query;
  const Query query("watch=1&labelSelector=a%3Db%2Cc&limit=5&x=a+b&bare&n=7x");
  CHECK(query.is_true("watch"));
  CHECK(query.is_true("bare"));
  CHECK(Query("a=True").is_true("a"));
  for (const char* text : {"a=0", "a=false", "a=False", "b=1"})
    CHECK_FALSE(Query(text).is_true("a"));
  CHECK_FALSE(query.is_true("none"));
  CHECK(query.get("labelSelector") == "a=b,c");
  CHECK(query.get("x") == "a b");
  CHECK(query.get_int("limit") == 5);
  CHECK_FALSE(query.get_int("n"));
  CHECK_FALSE(query.get_int("none"));
}

TEST_CASE("selector: labels") {
  const kube::Json object = json("{'metadata':{'labels':{'a':'b','e':'','x.io/y':'z'}}}");
  struct Case {
    std::string_view text;
    bool is_match;
  };
  const Case cases[] = {
      {"", true},
      {" ", true},
      {"a=b", true},
      {"a==b", true},
      {"a = b", true},
      {"a=c", false},
      {"a!=b", false},
      {"a!=c", true},
      {"q!=c", true},
      {"a", true},
      {"q", false},
      {"!a", false},
      {"!q", true},
      {"e", true},
      {"e=", true},
      {"q=", false},
      {"a in (b,c)", true},
      {"a in (c, d)", false},
      {"a in(b)", true},
      {"a notin (b,c)", false},
      {"a notin (c)", true},
      {"q notin (c)", true},
      {"a=b,x.io/y in (z),!q", true},
      {"a=b,x.io/y=w", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const auto selector = Selector::parse(c.text, "", {"", "v1", "pods", "Pod", true});
    REQUIRE(selector);
    CHECK(selector->matches(object) == c.is_match);
  }
  for (const auto* text :
       {"=b", "a in b", "a within (b)", "a,,b", "a ~ b", "a=!b", "a=b=c", "a=b c", "a!=b!"}) {
    CAPTURE(text);
    const auto selector = Selector::parse(text, "", {"", "v1", "pods", "Pod", true});
    CHECK_FALSE(selector);
  }
}

TEST_CASE("selector: fields") {
  const kube::Json pod = json(
      "{'metadata':{'name':'p','namespace':'n'},'spec':{'nodeName':'m','hostNetwork':true},"
      "'status':{'phase':'Running'}}");
  const kube::Resource pods{"", "v1", "pods", "Pod", true};
  struct Case {
    std::string_view text;
    bool is_match;
  };
  const Case cases[] = {
      {"metadata.name=p", true},
      {"metadata.name==p", true},
      {"metadata.name!=p", false},
      {"metadata.namespace=n,spec.nodeName=m", true},
      {"status.phase!=Failed,status.phase!=Succeeded", true},
      {"spec.nodeName=", false},
      {"spec.hostNetwork=true", true},
      {"spec.hostNetwork=false", false},
      {"status.podIP=", true},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const auto selector = Selector::parse("", c.text, pods);
    REQUIRE(selector);
    CHECK(selector->matches(pod) == c.is_match);
  }
  // An absent field has the zero of its type.
  CHECK(Selector::parse("", "spec.unschedulable=false", {"", "v1", "nodes", "Node", false})
            ->matches(json("{'spec':{}}")));
  const kube::Resource jobs{"batch", "v1", "jobs", "Job", true};
  CHECK(Selector::parse("", "status.successful=0", jobs)->matches(json("{'status':{}}")));
  CHECK(Selector::parse("", "status.successful=2", jobs)
            ->matches(json("{'status':{'succeeded':2}}")));
  CHECK(Selector::parse("", "spec.color=red", pods).error().message ==
        "field label not supported: spec.color");
  CHECK_FALSE(Selector::parse("", "metadata.name", pods));
  CHECK(Selector::parse("", "involvedObject.name=p,reason=Started",
                        {"", "v1", "events", "Event", true}));
  CHECK_FALSE(Selector::parse("", "status.phase=Running", {"", "v1", "configmaps", "ConfigMap"}));
}
