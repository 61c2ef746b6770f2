#include "local/tests/hostile_bodies.hh"

#include <fmt/format.h>

#include <algorithm>

namespace trainer::test {

namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  while (count-- > 0) all += text;
  return all;
}

// Objects within objects, or arrays.
std::string nested(std::size_t depth, bool is_array, std::string_view inner) {
  const std::string_view open = is_array ? "[" : R"({"a":)";
  return repeated(open, depth) + std::string(inner) + repeated(is_array ? "]" : "}", depth);
}

// Numbers near the limits of the store are frequent.
std::size_t depth(Choices& choices) {
  static const std::vector<std::size_t> kDepths{1, 2, 30, 95, 150, 180, 190, 199, 201, 2'000};
  const std::size_t around = choices.of(kDepths);
  return around > 100 ? around - 8 + choices.pick(16) : around;
}

const std::vector<std::string>& odd_values() {
  static const std::vector<std::string> kOdd{"null",
                                             "-0",
                                             "0.1",
                                             "1e308",
                                             "1e400",
                                             "1E-400",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "-1",
                                             "true",
                                             R"("")",
                                             R"("\u0000")",
                                             R"("\ud800")",
                                             R"("\udc00\ud800")",
                                             "\"\xff\"",
                                             "\"\xed\xa0\x80\"",
                                             R"("\u2028")",
                                             R"({"a":1,"a":2})",
                                             R"({"":{}})",
                                             R"({"f:a":{}})",
                                             R"([[],{}])",
                                             R"("2026-01-01T00:00:00Z")",
                                             "{",
                                             "NaN",
                                             R"(["a","a"])",
                                             R"([{"name":"a"},{"name":"a"}])",
                                             R"({"$patch":"replace"})"};
  return kOdd;
}

std::string managed_fields(Choices& choices) {
  return fmt::format(
      R"([{{"manager":"m","operation":"{}","apiVersion":"{}","fieldsType":"FieldsV1","fieldsV1":{}}}])",
      choices.one_in(2) ? "Apply" : "Update", choices.one_in(4) ? "" : "v1",
      choices.one_in(4) ? hostile_value(choices) : repeated(R"({"f:a":)", depth(choices)) + "{}");
}

// The members of metadata that a client may set.
std::string metadata(Choices& choices, std::string_view ns, std::string_view name) {
  std::string text = fmt::format(R"("name":"{}")", name);
  if (!ns.empty()) text += fmt::format(R"(,"namespace":"{}")", ns);
  static const std::vector<std::string> kMembers{
      "labels",    "annotations",     "finalizers",        "ownerReferences", "managedFields",
      "uid",       "resourceVersion", "deletionTimestamp", "generateName",    "creationTimestamp",
      "generation"};
  if (choices.one_in(4))
    text += fmt::format(R"(,"{}":{})", choices.of(kMembers), hostile_value(choices));
  if (choices.one_in(8)) text += R"(,"finalizers":["x.io/keep"])";
  if (choices.one_in(8)) text += R"(,"labels":{"l":"v"})";
  if (choices.one_in(8))
    text += R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"uid-1"}])";
  if (choices.one_in(16)) text += ",\"managedFields\":" + managed_fields(choices);
  return text;
}

// The schema of a kind that a CustomResourceDefinition makes.
std::string schema(Choices& choices) {
  static const std::vector<std::string> kSchemas{
      R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})",
      R"({"type":"object","properties":{"spec":{"type":"object"}}})",
      R"({"properties":{"spec":{"pattern":"[","minLength":"x","maximum":{}}}})",
      R"({"properties":{"spec":{"additionalProperties":true,"default":{"a":null}}}})",
      R"({"properties":{"spec":{"required":[1],"enum":{},"items":7}},"required":{}})",
      R"({"properties":[],"items":[],"allOf":[5],"not":1,"x-kubernetes-validations":[{"rule":1}]})"};
  if (choices.one_in(3)) return R"({"properties":{"spec":)" + hostile_value(choices) + "}}";
  return choices.one_in(4) ? hostile_value(choices) : choices.of(kSchemas);
}

// These members make an object of a kind valid, besides metadata.
std::string usual_members(Choices& choices, std::string_view kind) {
  static constexpr std::string_view kPod =
      R"({"containers":[{"name":"c","image":"i"}],"restartPolicy":"Never"})";
  if (kind == "Pod") return fmt::format(R"("spec":{})", kPod);
  if (kind == "Job") return fmt::format(R"("spec":{{"template":{{"spec":{}}}}})", kPod);
  if (kind == "Service") return R"("spec":{"ports":[{"port":1}]})";
  if (kind == "JobSet")
    return fmt::format(
        R"("spec":{{"replicatedJobs":[{{"name":"j","template":{{"spec":{{"template":{{"spec":{}}}}}}}}}]}})",
        kPod);
  if (kind == "CustomResourceDefinition")
    return fmt::format(
        R"("spec":{{"group":"y.io","scope":"Namespaced","names":{{"plural":"p","kind":"P"}},"versions":[{{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":{},"schema":{{"openAPIV3Schema":{}}}}}]}})",
        choices.one_in(4) ? hostile_value(choices) : "[]", schema(choices));
  if (kind == "TrainJob") return R"("spec":{"runtimeRef":{"name":"r"}})";
  if (kind == "Event") return R"("involvedObject":{"namespace":"n"},"reason":"R")";
  return R"("data":{"k":"v"})";
}

std::string number_of(std::size_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

std::string field(int number, std::string_view text) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + number_of(text.size()) +
         std::string(text);
}

std::string protobuf(Choices& choices, std::string_view kind, std::string_view ns,
                     std::string_view name) {
  std::string meta = field(1, name);
  if (!ns.empty()) meta += field(3, ns);
  const std::string fields = repeated(R"({"f:a":)", 1) + nested(depth(choices), false, "{}") + "}";
  std::string entry = field(1, "m") + field(2, "Update") + field(3, "v1") + field(6, "FieldsV1") +
                      field(7, field(1, choices.one_in(4) ? hostile_value(choices) : fields));
  // Numbers above 15 need two bytes.
  meta += "\x8a\x01" + number_of(entry.size()) + entry;
  const std::string data = field(1, "k") + field(2, choices.take(choices.pick(20)));
  const std::string raw = field(1, meta) + field(2, data);
  std::string body("k8s\0", 4);
  return body + field(1, field(1, "v1") + field(2, kind)) + field(2, raw);
}

std::string pointer(Choices& choices) {
  static const std::vector<std::string> kBegins{
      "", "/spec", "/data", "/metadata/annotations", "/metadata", "/status", "/spec/template"};
  std::string path = choices.of(kBegins) + repeated("/a", choices.one_in(2) ? depth(choices) : 0);
  if (choices.one_in(4)) path += choices.one_in(2) ? "/-" : "/0";
  return path;
}

std::string json_patch(Choices& choices) {
  std::string operations;
  for (std::size_t left = choices.pick(5) + 1; left > 0; --left) {
    static const std::vector<std::string> kNames{"add",     "copy",   "move",
                                                 "replace", "remove", "test"};
    operations += fmt::format(R"({}{{"op":"{}","path":"{}","from":"{}","value":{}}})",
                              operations.empty() ? "" : ",", choices.of(kNames), pointer(choices),
                              pointer(choices), hostile_value(choices));
  }
  return "[" + operations + "]";
}

}  // namespace

std::size_t Choices::pick(std::size_t count) {
  if (rest_.empty()) return 0;
  const auto byte = static_cast<unsigned char>(rest_.front());
  rest_.remove_prefix(1);
  return byte % count;
}

std::string_view Choices::take(std::size_t count) {
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(taken.size());
  return taken;
}

std::string hostile_value(Choices& choices) {
  switch (choices.pick(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return nested(depth(choices), choices.one_in(3), choices.one_in(4) ? "[1]" : "{}");
    case 4:
    case 5:
    case 6:
      return choices.of(odd_values());
    case 7:
      return std::string(choices.take(choices.pick(40)));
    case 8:
      // Rare, since it takes long.
      if (!choices.one_in(8)) return R"({"a":{"a":{"b":"c"}}})";
      return fmt::format(R"({{"x{}":"{}"}})", choices.pick(4),
                         std::string((choices.pick(9) + 1) * 180'000, choices.one_in(4) ? 1 : 'x'));
    case 9:
      if (!choices.one_in(16)) return R"({"a":["b"]})";
      return "[" + repeated("[],", (choices.pick(5) + 1) * 70'000) + "1]";
    default:
      return choices.one_in(2) ? R"("v")" : R"({"a":"b"})";
  }
}

Body hostile_object(Choices& choices, std::string_view api_version, std::string_view kind,
                    std::string_view ns, std::string_view name) {
  if (api_version == "v1" && choices.one_in(8))
    return {protobuf(choices, kind, ns, name), "application/vnd.kubernetes.protobuf"};
  std::string text = fmt::format(
      R"({{"apiVersion":"{}","kind":"{}","metadata":{{{}}},{})", api_version, kind,
      metadata(choices, ns, name),
      choices.one_in(3) ? "\"spec\":" + hostile_value(choices) : usual_members(choices, kind));
  static const std::vector<std::string> kMembers{"status", "stringData", "x"};
  for (std::size_t left = choices.pick(3); left > 0; --left)
    text += fmt::format(R"(,"{}":{})", choices.of(kMembers), hostile_value(choices));
  // JSON is YAML.
  return {text + "}", choices.one_in(4) ? "application/yaml" : "application/json"};
}

Body hostile_patch(Choices& choices, std::string_view api_version, std::string_view kind,
                   std::string_view ns, std::string_view name) {
  if (choices.one_in(3)) return {json_patch(choices), "application/json-patch+json"};
  Body body = hostile_object(choices, api_version, kind, ns, name);
  static const std::vector<std::string> kTypes{"application/merge-patch+json",
                                               "application/strategic-merge-patch+json",
                                               "application/apply-patch+yaml"};
  body.media_type = choices.of(kTypes);
  if (body.media_type != "application/apply-patch+yaml" && choices.one_in(2))
    body.text =
        fmt::format(R"({{"{}":{}}})", choices.one_in(2) ? "spec" : "data", hostile_value(choices));
  return body;
}

}  // namespace trainer::test
