#include "controller/config/cluster_domain.hh"

#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("a pod's search path names the cluster domain") {
  struct Row {
    const char* text;
    const char* domain;
  };
  const Row rows[] = {
      {"", ""},
      {"nameserver 10.0.0.10\n", ""},
      {"search lan.example.com\n", ""},
      {"search kubeflow-system.svc.cluster.local svc.cluster.local cluster.local lan\n"
       "nameserver 10.0.0.10\noptions ndots:5\n",
       "cluster.local"},
      {"search ns.svc.corp.internal svc.corp.internal. corp.internal", "corp.internal"},
      {"search ns.svc.a svc.a a\nsearch lan\n", ""},
      {"# search svc.no\n  search\tsvc.yes\n", "yes"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(cluster_domain_in(row.text) == row.domain);
  }
}

TEST_CASE("another cluster domain than the configured one is warned about") {
  const char* const text = "search svc.corp.internal corp.internal\n";
  CHECK_FALSE(cluster_domain_warning("corp.internal", text));
  CHECK_FALSE(cluster_domain_warning("cluster.local", "search lan\n"));
  const auto warning = cluster_domain_warning("cluster.local", text);
  REQUIRE(warning);
  CHECK(warning->find("set clusterDomain: corp.internal") != std::string::npos);
}
