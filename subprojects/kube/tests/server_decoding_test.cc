// These errors are those of a decoder of Go, in its words.
#include "kube/server/decoding.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::server::decoding_problem;
using kube::server::GoTypes;
using kube::test::json;

namespace {

const Json& types() {
  static const Json kTypes = json(R"({
    'Pod': {'type': 'object', 'properties': {
      'metadata': {'type': 'object'}, 'spec': {'$ref': '#/PodSpec'}}},
    'PodSpec': {'type': 'object', 'properties': {
      'containers': {'type': 'array', 'items': {'$ref': '#/Container'}},
      'nodeSelector': {'type': 'object', 'additionalProperties': {'type': 'string'}},
      'hostNetwork': {'type': 'boolean'}, 'weight': {'type': 'number'},
      'priority': {'type': 'integer', 'format': 'int32'},
      'seconds': {'type': 'integer', 'format': 'int64'}, 'open': {}}},
    'Container': {'type': 'object', 'properties': {
      'name': {'type': 'string'}, 'key': {'type': 'string', 'format': 'byte'},
      'since': {'type': 'string', 'format': 'date-time'},
      'args': {'type': 'array', 'items': {'type': 'string'}},
      'limits': {'type': 'object', 'additionalProperties': {'$ref': '#/Quantity'}},
      'port': {'x-kubernetes-int-or-string': true}}},
    'Quantity': {'x-kubernetes-int-or-string': true, 'pattern': '^x$'}})");
  return kTypes;
}

// Returns the problem of the spec of a pod.
std::string problem(std::string_view spec) {
  const GoTypes go{[](const Json& schema) {
    const std::string_view reference = schema.get_string("$ref");
    return reference.empty() ? nullptr : types().find(reference.substr(2));
  }};
  return decoding_problem(Json::object({{"spec", json(spec)}}), json("{'$ref': '#/Pod'}"), go);
}

}  // namespace

TEST_CASE("decoding: the first value that its field cannot hold") {
  struct Case {
    std::string_view spec, problem;
  };
  const std::string_view kQuantities =
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  const Case cases[] = {
      {"{}", ""},
      {"null", ""},
      {"{'unknown':5,'open':{'a':[1]},'weight':1,'containers':null}", ""},
      {"{'containers':[null,{'name':'a','key':'aGk=','since':'2026-01-01T00:00:00Z',"
       "'args':['x',null],'limits':{'cpu':2,'memory':'1Gi','x':0.5},'port':80}]}",
       ""},
      {"7", "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec"},
      {"{'containers':5}",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {"{'containers':{}}",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {"{'containers':['a']}",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
       "v1.Container"},
      {"{'containers':[{},{'name':true}]}",
       "json: cannot unmarshal bool into Go struct field Container.spec.containers.name of type "
       "string"},
      {"{'containers':[{'args':'x'}]}",
       "json: cannot unmarshal string into Go struct field Container.spec.containers.args of type "
       "[]string"},
      {"{'nodeSelector':[]}",
       "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type "
       "map[string]string"},
      {"{'nodeSelector':{'a':1.5}}",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type "
       "string"},
      {"{'hostNetwork':'maybe'}",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"},
      {"{'weight':'x'}",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.weight of type float64"},
      {"{'priority':'3'}",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"},
      {"{'priority':2147483648}",
       "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of "
       "type int32"},
      {"{'seconds':2147483648}", ""},
      {"{'seconds':1.5}",
       "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.seconds of type int64"},
      {"{'containers':[{'port':false}]}",
       "json: cannot unmarshal bool into Go struct field Container.spec.containers.port of type "
       "int32"},
      {"{'containers':[{'limits':{'cpu':'lots'}}]}", kQuantities},
      {"{'containers':[{'limits':{'cpu':true}}]}", kQuantities},
      {"{'containers':[{'key':'pass word'}]}", "illegal base64 data at input byte 4"},
      {"{'containers':[{'key':'aGkaG'}]}", "illegal base64 data at input byte 4"},
      {"{'containers':[{'key':5}]}",
       "json: cannot unmarshal number into Go struct field Container.spec.containers.key of type "
       "[]uint8"},
      {"{'containers':[{'since':'today'}]}",
       "parsing time \"today\" as \"2006-01-02T15:04:05Z07:00\""},
  };
  for (const auto& c : cases) {
    CAPTURE(c.spec);
    CHECK(problem(c.spec) == c.problem);
  }
}

TEST_CASE("decoding: a value without a field") {
  CHECK(decoding_problem(Json(5), json("{'type': 'string'}"), {}) ==
        "json: cannot unmarshal number into Go value of type string");
}
