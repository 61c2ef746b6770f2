#include "tests/support/recorded_cases.hh"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

namespace trainer::test {

using kube::Json;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string read_case(const std::string& path) {
  std::string text = read_file(path);
  for (const std::string_view word : {": n", ": y"})
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
      if (const char end = text.at(at + word.size()); end == ',' || end == '}' || end == '\n')
        text.insert(at + 3, "'").insert(at + 2, "'");
  return text;
}

Json cleaned(const Json& value, std::string_view key) {
  if (key == "uid") return "<uid>";
  if (key.ends_with("Time") || key == "startedAt") return "<time>";
  if (value.is_object()) {
    Json result = Json::object();
    for (const auto& [name, member] : value.as_object()) {
      const bool is_noise = key == "metadata" && (name == "uid" || name == "deletionTimestamp");
      if (!is_noise) result.set(name, cleaned(member, name));
    }
    return result;
  }
  if (value.is_array()) {
    Json result = Json::array();
    for (const Json& item : value.as_array()) result.push_back(cleaned(item));
    return result;
  }
  return value;
}

Json without_defaults(const Json& value) {
  static const Json kDefaults = *kube::parse_yaml(
      "{dnsPolicy: ClusterFirst, enableServiceLinks: true, imagePullPolicy: IfNotPresent, "
      "preemptionPolicy: PreemptLowerPriority, priority: 0, protocol: TCP, serviceAccount: "
      "default, "
      "serviceAccountName: default, schedulerName: "
      "default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30, type: "
      "ClusterIP}");
  if (value.is_array()) {
    Json items = Json::array();
    for (const Json& item : value.as_array()) items.push_back(without_defaults(item));
    return items;
  }
  if (!value.is_object()) return value;
  Json members = Json::object();
  for (const auto& [name, member] : value.as_object())
    if (kDefaults.get(name).is_null() || kDefaults.get(name) != member)
      members.set(name, without_defaults(member));
  return members;
}

Json projected(const Json& object, const Json& members) {
  if (!members.is_array()) return object;
  Json kept = Json::object();
  for (const Json& name : members.as_array())
    if (const Json* member = object.find(name.as_string())) kept.set(name.as_string(), *member);
  return kept;
}

std::string difference(const Json& own, const Json& recorded, const std::string& path) {
  if (own == recorded || (recorded.is_string() && recorded.as_string().starts_with('<'))) return {};
  if (own.is_object() && recorded.is_object()) {
    std::set<std::string> names;
    for (const auto& [name, member] : own.as_object()) names.insert(name);
    // A limit without a request is a request, too.
    if (!path.ends_with("/requests"))
      for (const auto& [name, member] : recorded.as_object()) names.insert(name);
    // The API server adds tolerations and addresses, and derives some members from others.
    for (const char* added : {"clusterIP", "tolerations"}) names.erase(added);
    for (const char* derived : {"apiVersion", "defaultMode", "imagePullPolicy", "requests",
                                "serviceAccount", "targetPort"})
      if (own.get(derived).is_null()) names.erase(derived);
    for (const std::string& name : names) {
      const Json& mine = own.get(name);
      const Json& theirs = recorded.get(name);
      if ((mine.empty() || mine == Json(false)) && (theirs.empty() || theirs == Json(false)))
        continue;
      if (auto found = difference(mine, theirs, path + "/" + name); !found.empty()) return found;
    }
    return {};
  }
  if (own.is_array() && recorded.is_array() && own.size() == recorded.size()) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Json& theirs = recorded.as_array()[i];
      auto found = difference(own.as_array()[i], theirs, fmt::format("{}/{}", path, i));
      if (!found.empty()) return found;
    }
    return {};
  }
  return fmt::format("{}: {} instead of {}", path, kube::print_json(own),
                     kube::print_json(recorded));
}

}  // namespace trainer::test
