#include "kube/model/json_text.hh"
#include "kube/server/tables.hh"
#include "kube/tests/catch.hh"

namespace {

using kube::Json;
using kube::Time;
using kube::server::human_duration;
using kube::server::ServedKind;
using kube::server::table_of;

Time at(std::string_view text) {
  return *Time::parse(text);
}

ServedKind widgets() {
  ServedKind kind;
  kind.resource = {"acme.io", "v1", "widgets", "Widget", true};
  kind.columns = {{"State", "string", ".status.state"},
                  {"Restarts", "string", ".status.restarts"},
                  {"Nodes", "integer", ".spec.nodes"},
                  {"Held", "boolean", ".spec.held"},
                  {"Age", "date", ".metadata.creationTimestamp"},
                  {"Why", "string", ".status.why", "", 1}};
  return kind;
}

const Json kWidget = *kube::parse_json(R"({"apiVersion": "acme.io/v1", "kind": "Widget",
  "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"nodes": 2, "held": "no"}, "status": {"state": "Running", "restarts": 3}})");

}  // namespace

TEST_CASE("durations are printed as Kubernetes prints them") {
  const struct {
    std::int64_t seconds;
    std::string text;
  } kCases[] = {{-2, "<invalid>"},  {-1, "0s"},           {0, "0s"},          {119, "119s"},
                {120, "2m"},        {125, "2m5s"},        {599, "9m59s"},     {600, "10m"},
                {10'799, "179m"},   {10'800, "3h"},       {11'100, "3h5m"},   {28'800, "8h"},
                {172'799, "47h"},   {172'800, "2d"},      {176'400, "2d1h"},  {691'199, "7d23h"},
                {691'200, "8d"},    {63'071'999, "729d"}, {63'072'000, "2y"}, {63'158'400, "2y1d"},
                {252'288'000, "8y"}};
  for (const auto& c : kCases) CHECK(human_duration(std::chrono::seconds(c.seconds)) == c.text);
  CHECK(kube::server::human_age("", Time()) == "<unknown>");
  CHECK(kube::server::human_age("soon", Time()) == "<invalid>");
}

TEST_CASE("a Table is answered where it comes first of what can be answered") {
  using kube::server::wants_table;
  // kubectl get
  CHECK(
      wants_table("application/json;as=Table;v=v1;g=meta.k8s.io,"
                  "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"));
  CHECK(wants_table("application/json; as=Table; g=meta.k8s.io; v=v1, application/json"));
  CHECK(
      wants_table("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,"
                  "application/json;as=Table;v=v1;g=meta.k8s.io"));
  CHECK_FALSE(wants_table("application/json"));
  CHECK_FALSE(wants_table("application/json,application/json;as=Table;v=v1;g=meta.k8s.io"));
  CHECK_FALSE(wants_table("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"));
  CHECK_FALSE(wants_table("*/*"));
  CHECK_FALSE(wants_table(""));
}

TEST_CASE("cells by JSONPath, with the name before them") {
  const Json metadata = Json::object({{"resourceVersion", "7"}});
  const Json table = table_of(widgets(), {&kWidget}, metadata, "", at("2026-01-01T00:02:00Z"));
  CHECK(table.get_string("kind") == "Table");
  CHECK(table.get_string("apiVersion") == "meta.k8s.io/v1");
  CHECK(table.get("metadata") == metadata);
  const Json& columns = table.get("columnDefinitions");
  REQUIRE(columns.size() == 7);
  CHECK(columns.as_array()[0].get_string("name") == "Name");
  CHECK(columns.as_array()[0].get_string("format") == "name");
  CHECK(columns.as_array()[6].get_int("priority") == 1);
  const Json& row = table.get("rows").as_array()[0];
  // A value of another type than the column's is left out.
  CHECK(kube::print_json(row.get("cells")) == R"(["w","Running","3",2,null,"2m",null])");
  CHECK(row.get("object").get_string("kind") == "PartialObjectMetadata");
  CHECK(row.get("object").get("metadata") == kWidget.get("metadata"));
}

TEST_CASE("rows hold what the client asks for") {
  const Time now = at("2026-01-01T00:02:00Z");
  const auto object_in = [now](std::string_view include) {
    return table_of(widgets(), {&kWidget}, {}, include, now)
        .get("rows")
        .as_array()[0]
        .get("object");
  };
  CHECK(object_in("Object") == kWidget);
  CHECK(object_in("None").is_null());
  CHECK(object_in("Metadata").find("spec") == nullptr);
}

TEST_CASE("a kind without columns shows its age, and one with cells all of them itself") {
  ServedKind kind = widgets();
  const Time now = at("2026-01-01T00:00:05Z");
  kind.columns.clear();
  Json table = table_of(kind, {&kWidget}, {}, "None", now);
  CHECK(kube::print_json(table.get("rows")) == R"([{"cells":["w","5s"]}])");
  kind.columns = {{"Object", "string"}, {"Name", "string"}};
  kind.cells = [](const Json& object, Time) {
    return Json::array({"widget", object.get("metadata").get_string("name")});
  };
  table = table_of(kind, {&kWidget}, {}, "None", now);
  CHECK(kube::print_json(table.get("rows")) == R"([{"cells":["widget","w"]}])");
  CHECK(table.get("columnDefinitions").as_array()[1].get_string("format") == "name");
}
