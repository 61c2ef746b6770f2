#include "kube/model/pod_checks.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/catch.hh"

using kube::Json;

namespace {

Json yaml(const std::string& text) {
  auto value = kube::parse_yaml(text);
  INFO(text);
  REQUIRE(value);
  return std::move(*value);
}

std::string problems_of(const std::string& spec) {
  kube::FieldErrors errors;
  kube::check_pod_spec(yaml("{" + spec + "}"), "spec", errors);
  return kube::to_string(errors);
}

struct Row {
  const char* members;
  const char* problem;  // its beginning; "" for none
};

void check_rows(const std::string& before, const std::vector<Row>& rows, const std::string& after,
                const std::string& path) {
  for (const Row& row : rows) {
    INFO(row.members);
    const std::string found = problems_of(before + row.members + after);
    if (*row.problem == '\0')
      CHECK(found.empty());
    else
      CHECK_THAT(found, kube::test::starts_with(path + row.problem));
  }
}

const std::string kContainers = "containers: [{name: a, image: i}]";

}  // namespace

TEST_CASE("pods: what a container says") {
  check_rows(
      "containers: [{name: a, ",
      {
          {"image: 'i '",
           ".image: Invalid value: \"i \": must not have leading or trailing whitespace"},
          {"image: i, env: [{name: A B}, {name: a.b-c}, {name: '1'}]", ""},
          {"image: i, env: [{name: A=B}]",
           ".env[0].name: Invalid value: \"A=B\": a valid environment"},
          {"image: i, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: "
           "metadata.name}}}]",
           ".env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not "
           "empty"},
          {"image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.uid}, "
           "secretKeyRef: "
           "{name: s, key: k}}}]",
           ".env[0].valueFrom: Invalid value: \"\": may not have more than one field"},
          {"image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
           "\"metadata.labels['x/y']\"}}}]",
           ""},
          {"image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]",
           ".env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\""},
          {"image: i, envFrom: [{secretRef: {name: My Secret}}]",
           ".envFrom[0].secretRef.name: Invalid value: \"My Secret\""},
          {"image: i, envFrom: [{configMapRef: {}}]",
           ".envFrom[0].configMapRef.name: Required value"},
          {"image: i, ports: [{containerPort: 80, name: a-1}, {containerPort: 81, name: a-2}]", ""},
          {"image: i, ports: [{containerPort: 80, name: a}, {containerPort: 81, name: a}]",
           ".ports[1].name: Duplicate value: \"a\""},
          {"image: i, ports: [{containerPort: 80, name: pytorchjob-port-2}]",
           ".ports[0].name: Invalid value: \"pytorchjob-port-2\": must be no more than 15 "
           "characters"},
          {"image: i, ports: [{containerPort: 80, name: '80'}]",
           ".ports[0].name: Invalid value: \"80\": must contain at least one letter"},
          {"image: i, ports: [{containerPort: 0}]", ".ports[0].containerPort: Invalid value: 0"},
          {"image: i, ports: [{containerPort: 80, hostPort: 70000}]",
           ".ports[0].hostPort: Invalid value: 70000"},
          {"image: i, securityContext: {runAsUser: -1}",
           ".securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647"},
      },
      "}]", "spec.containers[0]");
}

TEST_CASE("pods: amounts of resources") {
  check_rows(
      "containers: [{name: a, image: i, resources: {",
      {
          {"requests: {cpu: 1}, limits: {cpu: 2, nvidia.com/gpu: 1}", ""},
          {"requests: {nvidia.com/gpu: 1k}, limits: {nvidia.com/gpu: 1000}", ""},
          {"limits: {hugepages-2Mi: 2Mi, memory: 1Gi}", ""},
          {"requests: {kubernetes.io/x: 1}", ""},
          {"requests: {nvidia.com/gpu: 1}",
           ".limits[nvidia.com/gpu]: Required value: Limit must be set"},
          {"requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}",
           ".requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"},
          {"limits: {nvidia.com/gpu: 500m}",
           ".limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer"},
          {"requests: {cpu: 2}, limits: {cpu: 1}",
           ".requests: Invalid value: \"2\": must be less than"},
          {"limits: {cpu: -1}",
           ".limits[cpu]: Invalid value: \"-1\": must be greater than or equal to"},
          {"limits: {gpu: 1}", ".limits[gpu]: Invalid value: \"gpu\": must be a standard resource"},
          {"limits: {nvidia/com/gpu: 1}",
           ".limits[nvidia/com/gpu]: Invalid value: \"nvidia/com/gpu\""},
          {"limits: {hugepages-2Mi: 2Mi}", ": Forbidden: HugePages require cpu or memory"},
      },
      "}}]", "spec.containers[0].resources");
}

// Each union with none of its members, with each one, and with each two. Members in the order in
// which Kubernetes looks at them.
TEST_CASE("pods: one member of each union is set") {
  struct Union {
    std::string before, after;  // members before and after it
    std::vector<const char*> members;
    std::string at;
    const char *none, *several;  // "": none of them may be set
    bool names_second = false;   // the error of several is about the second member
  };
  const std::string handlers_none = "Required value: must specify a handler type";
  const char* const two_handlers = "Forbidden: may not specify more than 1 handler type";
  const std::string of_container = "containers: [{name: a, image: i, ";
  std::vector<Union> unions = {
      {of_container + "env: [{name: A, valueFrom: {",
       "}}]}]",
       {"fieldRef: {fieldPath: metadata.name}", "resourceFieldRef: {resource: limits.cpu}",
        "configMapKeyRef: {name: c, key: k}", "secretKeyRef: {name: s, key: k}"},
       "spec.containers[0].env[0].valueFrom",
       "Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, "
       "`configMapKeyRef` or "
       "`secretKeyRef`",
       "Invalid value: \"\": may not have more than one field specified at a time"},
      {of_container + "envFrom: [{prefix: A, ",
       "}]}]",
       {"configMapRef: {name: c}", "secretRef: {name: s}"},
       "spec.containers[0].envFrom",
       "Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
       "Invalid value: \"\": may not have more than one field specified at a time"},
      {kContainers + ", volumes: [{name: v, ",
       "}]",
       {"emptyDir: {}", "hostPath: {path: /x}", "configMap: {name: c}", "csi: {driver: d}",
        "image: {reference: r}"},
       "spec.volumes[0]",
       "",
       "Forbidden: may not specify more than 1 volume type"},
      {kContainers + ", volumes: [{name: v, projected: {sources: [{",
       "}]}}]",
       {"secret: {name: s}", "configMap: {name: c}",
        "downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}",
        "serviceAccountToken: {path: t}"},
       "spec.volumes[0].projected.sources[0]",
       "",
       "Forbidden: may not specify more than 1 volume type per source"},
  };
  for (const char* list : {"containers", "initContainers"})
    for (const std::string where : {"livenessProbe", "readinessProbe", "startupProbe",
                                    "lifecycle.postStart", "lifecycle.preStop"}) {
      const bool is_hook = where.find('.') != where.npos;
      const std::string others = list == std::string("containers") ? "" : kContainers + ", ";
      unions.push_back({others + list + ": [{name: x, image: i, " +
                            (is_hook ? "lifecycle: {" + where.substr(where.find('.') + 1) : where) +
                            ": {",
                        is_hook ? "}}}]" : "}}]",
                        {"exec: {command: [x]}", "httpGet: {port: 1}", "tcpSocket: {port: 1}",
                         is_hook ? "sleep: {seconds: 1}" : "grpc: {port: 1}"},
                        "spec." + std::string(list) + "[0]." + where,
                        handlers_none.c_str(),
                        two_handlers,
                        true});
    }
  for (const Union& each : unions) {
    const auto found = [&each](const std::string& members) {
      INFO(each.at + " " + members);
      return problems_of(each.before + members + each.after);
    };
    const std::string none = *each.none == '\0' ? "" : each.at + ": " + each.none;
    CHECK(found("") == none);
    for (std::size_t one = 0; one < each.members.size(); ++one) {
      const std::string first = each.members[one];
      CHECK(found(first) == "");
      CHECK(found(first.substr(0, first.find(':')) + ": null") == none);
      for (std::size_t other = one + 1; other < each.members.size(); ++other) {
        const std::string second = each.members[other];
        const std::string name = each.names_second ? "." + second.substr(0, second.find(':')) : "";
        CHECK(found(first + ", " + second) == each.at + name + ": " + each.several);
      }
    }
  }
}

TEST_CASE("pods: volumes and mounts") {
  check_rows(
      "containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v",
      {
          {"}]}], volumes: [{name: v}]", ""},
          {"}]}], volumes: [{name: w}]",
           "containers[0].volumeMounts[0].name: Invalid value: \"v\": not"},
          {", subPath: a/b}]}], volumes: [{name: v}]", ""},
          {", subPath: a/..}]}], volumes: [{name: v}]",
           "containers[0].volumeMounts[0].subPath: Invalid value: \"a/..\": must not contain '..'"},
          {", subPath: /a}]}], volumes: [{name: v}]",
           "containers[0].volumeMounts[0].subPath: Invalid value: \"/a\": must be a relative path"},
          {"}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: ''}}]",
           "volumes[0].persistentVolumeClaim.claimName: Required value"},
          {"}]}], volumes: [{name: v, configMap: {}}]",
           "volumes[0].configMap.name: Required value"},
          {"}]}], volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]",
           "volumes[0]: Forbidden: may not specify more than 1 volume type"},
          {"}]}], volumes: [{name: v}, {name: V}]", "volumes[1].name: Invalid value: \"V\""},
      },
      "", "spec.");
}

TEST_CASE("pods: where they may run") {
  const std::string affinity =
      "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
      "matchExpressions[0]";
  const std::string node =
      ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
      "{nodeSelectorTerms: [{matchExpressions: [";
  const std::string equals = node + "{key: a, operator: Equals, values: [b]}]}]}}}";
  const std::string empty = node + "{key: a, operator: In}]}]}}}";
  const std::string many = node + "{key: a, operator: Exists, values: [b]}]}]}}}";
  const std::string fine = node + "{key: a.b/c, operator: NotIn, values: [b]}]}]}}}";
  check_rows(
      kContainers,
      {
          {"", ""},
          {", nodeSelector: {a/b: c, d: ''}", ""},
          {", nodeSelector: {a: b c}",
           "nodeSelector: Invalid value: \"b c\": a valid label must be"},
          {", nodeSelector: {a b: c}",
           "nodeSelector: Invalid value: \"a b\": name part must consist"},
          {fine.c_str(), ""},
          {equals.c_str(),
           (affinity + ".operator: Invalid value: \"Equals\": not a valid").c_str()},
          {empty.c_str(), (affinity + ".values: Required value: must be specified when").c_str()},
          {many.c_str(), (affinity + ".values: Forbidden: may not be specified when").c_str()},
          {", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}",
           "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey:"
           " "
           "Required value"},
          {", tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a, "
           "operator: Exists, effect: NoExecute, tolerationSeconds: 5}]",
           ""},
          {", tolerations: [{key: a, operator: equals}]",
           "tolerations[0].operator: Unsupported value: \"equals\""},
          {", tolerations: [{key: a, operator: Exists, value: b}]",
           "tolerations[0].operator: Invalid value: \"b\": value must be empty"},
          {", tolerations: [{effect: NoSchedule}]",
           "tolerations[0].operator: Invalid value: \"\": op"},
          {", tolerations: [{key: a, effect: noschedule}]",
           "tolerations[0].effect: Unsupported value: \"noschedule\""},
          {", tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]",
           "tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute'"},
          {", topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: "
           "DoNotSchedule}]",
           "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
          {", schedulingGates: [{name: a}, {name: a}]",
           "schedulingGates[1]: Duplicate value: \"a\""},
          {", serviceAccountName: My Account", "serviceAccountName: Invalid value: \"My Account\""},
      },
      "", "spec.");
}

TEST_CASE("pod templates: labels and annotations") {
  const auto problems = [](const std::string& metadata) {
    kube::FieldErrors errors;
    kube::check_pod_template(yaml("{metadata: {" + metadata + "}, spec: {" + kContainers + "}}"),
                             "spec.template", errors);
    return kube::to_string(errors);
  };
  CHECK(problems("labels: {a: b}, annotations: {A.b/c: 'any text'}") == "");
  CHECK(
      problems("labels: {a: b c}").find("spec.template.metadata.labels: Invalid value: \"b c\"") ==
      0);
  CHECK(problems("annotations: {a b: c}")
            .find("spec.template.metadata.annotations: Invalid value: \"a b\"") == 0);
}

TEST_CASE("one word that should have been several") {
  CHECK_FALSE(kube::several_words_in_one("torchrun"));
  CHECK_FALSE(kube::several_words_in_one(""));
  CHECK_FALSE(kube::several_words_in_one(" python"));
  CHECK_FALSE(kube::several_words_in_one("/opt/bin/run.sh"));
  CHECK(
      kube::several_words_in_one("python train.py")
          .value()
          .find("\"python train.py\" is one word with spaces, and no program has this name: write "
                "each word as an item of its own ([python, ...])") == 0);
  CHECK(
      kube::several_words_in_one("pip install x\npython t.py").value().find("\"pip install x\"") ==
      0);
}

TEST_CASE("errors are bounded, whatever number of items is wrong") {
  const Json items = Json(Json::Array(100'000, Json::object()));
  for (const char* list :
       {"volumes", "containers", "tolerations", "schedulingGates", "topologySpreadConstraints"}) {
    INFO(list);
    kube::FieldErrors errors;
    kube::check_pod_spec(Json::object({{list, items}}), "spec", errors);
    CHECK(errors.size() > 100);
    CHECK(errors.size() < 300);
  }
  for (const char* list : {"env", "ports", "volumeMounts"}) {
    INFO(list);
    kube::FieldErrors errors;
    kube::check_pod_spec(
        Json::object({{"containers", Json::array({Json::object({{list, items}})})}}), "spec",
        errors);
    CHECK(errors.size() > 100);
    CHECK(errors.size() < 300);
  }
}

TEST_CASE("pods: names and paths that a node makes files and hosts of") {
  check_rows(
      kContainers + ", ",
      {
          {"hostname: a, subdomain: b, nodeName: n.x, priorityClassName: p", ""},
          {"hostname: A_b", ".hostname: Invalid value: \"A_b\": a lowercase RFC 1123 label"},
          {"subdomain: ../x", ".subdomain: Invalid value: \"../x\": a lowercase RFC 1123 label"},
          {"nodeName: a/b", ".nodeName: Invalid value: \"a/b\": a lowercase RFC 1123 subdomain"},
          {"hostAliases: [{ip: 10.0.0.1, hostnames: [a.b]}, {ip: '::1'}]", ""},
          {"hostAliases: [{ip: 10.0.0}]",
           ".hostAliases[0].ip: Invalid value: \"10.0.0\": must be a valid IP address"},
          {"hostAliases: [{ip: 10.0.0.1, hostnames: [\"a\\n1.2.3.4 b\"]}]",
           ".hostAliases[0].hostnames[0]: Invalid value: \"a\\n1.2.3.4 b\": a lowercase RFC 1123"},
          {"volumes: [{name: v, configMap: {name: c, items: [{key: k, path: a/b}]}}]", ""},
          {"volumes: [{name: v, configMap: {name: c, items: [{key: k, path: a/../b}]}}]",
           ".volumes[0].configMap.items[0].path: Invalid value: \"a/../b\": must not contain '..'"},
          {"volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: /a}]}}]",
           ".volumes[0].secret.items[0].path: Invalid value: \"/a\": must be a relative path"},
          {"volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: ..a}]}}]}}]",
           ".volumes[0].projected.sources[0].downwardAPI.items[0].path: Invalid value: \"..a\": "
           "must not start with '..'"},
          {"volumes: [{name: v, configMap: {name: c, items: [{path: a}]}}]",
           ".volumes[0].configMap.items[0].key: Required value"},
          {"volumes: [{name: v, secret: {secretName: s, defaultMode: 512}}]",
           ".volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and "
           "0777"},
          {"volumes: [{name: v, hostPath: {path: /a/../b}}]",
           ".volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"},
          {"volumes: [{name: v, hostPath: {path: /a, type: Nothing}}]",
           ".volumes[0].hostPath.type: Unsupported value: \"Nothing\""},
      },
      "", "spec");
}
