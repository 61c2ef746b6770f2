#include "kube/model/names.hh"
#include "kube/tests/catch.hh"

namespace {

const std::string k63(63, 'a');
const std::string k64(64, 'a');
const std::string kBadLabel =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const std::string kBadSubdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const std::string kBad1035 =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end "
    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";
const std::string kBadValue =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

struct Case {
  std::string name;
  std::string message;
};

template <std::size_t N>
void check_all(std::string (*check)(std::string_view), const Case (&cases)[N]) {
  for (const auto& c : cases) {
    INFO(c.name);
    CHECK(check(c.name) == c.message);
  }
}

}  // namespace

// Each message is what k8s.io/apimachinery/pkg/util/validation v0.34 answers, joined where it
// answers several.
TEST_CASE("DNS-1123 labels") {
  check_all(kube::check_dns1123_label,
            {{"a", ""},
             {"0", ""},
             {"a-b--c", ""},
             {k63, ""},
             {k64, "must be no more than 63 characters"},
             {"", kBadLabel},
             {"-a", kBadLabel},
             {"a-", kBadLabel},
             {"A", kBadLabel},
             {"a_b", kBadLabel},
             {"a\n", kBadLabel},
             {"a.b", "must not contain dots"},
             {"a..b", kBadLabel},
             {k64 + "_", "must be no more than 63 characters, " + kBadLabel}});
}

TEST_CASE("DNS-1123 subdomains") {
  const std::string long_name = k63 + "." + k63 + "." + k63 + "." + std::string(61, 'b');
  check_all(kube::check_dns1123_subdomain,
            {{"a", ""},
             {"a.b-c.0", ""},
             {long_name, ""},
             {long_name + "b", "must be no more than 253 characters"},
             {"", kBadSubdomain},
             {".", kBadSubdomain},
             {"a.", kBadSubdomain},
             {".a", kBadSubdomain},
             {"a..b", kBadSubdomain},
             {"a.-b", kBadSubdomain},
             {"A.b", kBadSubdomain}});
}

TEST_CASE("DNS-1035 labels") {
  check_all(kube::check_dns1035_label, {{"a", ""},
                                        {"a0-b", ""},
                                        {k63, ""},
                                        {k64, "must be no more than 63 characters"},
                                        {"0a", kBad1035},
                                        {"", kBad1035},
                                        {"a-", kBad1035},
                                        {"a.b", kBad1035}});
}

TEST_CASE("label values") {
  check_all(kube::check_label_value,
            {{"", ""},
             {"a", ""},
             {"A_b.c-9", ""},
             {k63, ""},
             {k64, "must be no more than 63 characters"},
             {"-a", kBadValue},
             {"a/b", kBadValue},
             {k64 + "-", "must be no more than 63 characters, " + kBadValue}});
}

TEST_CASE("qualified names") {
  const std::string rule =
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
      "validation "
      "is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  const auto check = [](std::string_view key) {
    std::string all;
    for (const std::string& problem : kube::qualified_name_problems(key))
      all += (all.empty() ? "" : "; ") + problem;
    return all;
  };
  for (const auto& [key, problems] :
       std::vector<Case>{{"a", ""},
                         {"A_b.c-9", ""},
                         {"example.com/Name", ""},
                         {k63, ""},
                         {k64, "name part must be no more than 63 characters"},
                         {"", "name part must be non-empty"},
                         {"a b", "name part " + rule},
                         {"/a", "prefix part must be non-empty"},
                         {"a/", "name part must be non-empty"},
                         {"Example.com/a", "prefix part " + kBadSubdomain},
                         {"a/b/c", "a qualified name " + rule +
                                       " with an optional DNS subdomain prefix and '/' (e.g. "
                                       "'example.com/MyName')"}}) {
    INFO(key);
    CHECK(check(key) == problems);
  }
}

TEST_CASE("labels and annotations") {
  using kube::Json;
  const auto labels = [](Json value) {
    return kube::to_string(kube::label_errors("metadata.labels", Json::object({{"a", value}})));
  };
  CHECK(labels("b") == "");
  CHECK(labels(Json()) == "");
  CHECK(labels("b c") == "metadata.labels: Invalid value: \"b c\": " + kBadValue);
  CHECK(labels(1) ==
        "metadata.labels.a: Invalid value: 1: must be of type string, found integer: write it in "
        "quotes");
  CHECK(kube::label_errors("metadata.labels", Json::object({{"a b", "c"}})).size() == 1);
  CHECK(kube::label_errors("metadata.labels", Json()).empty());

  const auto annotations = [](std::string_view key, Json value) {
    return kube::to_string(
        kube::annotation_errors("metadata.annotations", Json::object({{key, value}})));
  };
  CHECK(annotations("Example.COM/x", "any text\n") == "");
  CHECK(annotations("a b", "c").find("metadata.annotations: Invalid value: \"a b\": name part") ==
        0);
  CHECK(annotations("a", true).find("metadata.annotations.a: Invalid value: true: must be") == 0);
  CHECK(annotations("a", std::string(262143, 'x')) == "");
  CHECK(annotations("a", std::string(262144, 'x')) ==
        "metadata.annotations: Too long: may not be more than 262144 bytes");
}

TEST_CASE("domain-prefixed paths") {
  const std::string no_path = "must be a domain-prefixed path (such as \"acme.io/foo\")";
  const std::string bad_path =
      "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
  check_all(kube::check_domain_prefixed_path, {{"acme.io/foo", ""},
                                               {"acme.io/foo/bar-%20~(x)", ""},
                                               {"acme.io", no_path},
                                               {"", "must be set"},
                                               {"/foo", no_path},
                                               {"acme.io/", no_path},
                                               {"Acme.io/foo", kBadSubdomain},
                                               {"acme.io/a b", bad_path},
                                               {"acme.io/a?b", bad_path}});
}

TEST_CASE("each problem is reported alone where upstream does so") {
  CHECK(kube::dns1123_label_problems(k64 + "-") ==
        std::vector<std::string>{"must be no more than 63 characters", kBadLabel});
  CHECK(kube::to_string(kube::domain_prefixed_path_errors("spec.managedBy", "")) ==
        "spec.managedBy: Required value");
  CHECK(kube::to_string(kube::domain_prefixed_path_errors("spec.managedBy", "x")) ==
        "spec.managedBy: Invalid value: \"x\": must be a domain-prefixed path (such as "
        "\"acme.io/foo\")");
  const auto errors = kube::domain_prefixed_path_errors("spec.managedBy", "A/ ");
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].to_string() == "spec.managedBy: Invalid value: \"A\": " + kBadSubdomain);
  CHECK(errors[1].to_string() ==
        "spec.managedBy: Invalid value: \" \": Invalid path (regex used for validation is "
        "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
}
