// An API server with a few kinds, for tests of kube/server.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"
#include "kube/server/api.hh"
#include "kube/server/object_store.hh"
#include "kube/server/served_kind.hh"

namespace kube::test {

// Parses a text in which ' may be written for ".
Json json(std::string_view text);

// Serves ConfigMaps with a schema, Secrets, Pods, Jobs, Events and Namespaces without, and Widgets
// (example.com/v1) with a schema, a status and a scale:
//   spec: {size: integer >= 0, replicas: integer, parts: [{name, color, count}] by name,
//          ports: [{port, protocol = TCP}] by port and protocol, tags: set of strings,
//          order: atomic list of strings, labels: map of strings, point: atomic {x, y}}
// Time begins at 2026-01-01T00:00:00Z. Uids are "uid-1", "uid-2"; suffixes "aaaa1", "aaaa2".
class World {
 public:
  World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  server::Response send(std::string_view method, std::string_view target,
                        std::string_view body = {},
                        std::string_view content_type = "application/json");
  server::Response get(std::string_view target) { return send("GET", target); }
  server::Response post(std::string_view target, std::string_view body) {
    return send("POST", target, body);
  }
  // Sends an apply by a manager.
  server::Response apply(std::string_view path, std::string_view manager, std::string_view body,
                         bool is_forced = false);
  server::Watch watch(std::string_view target);
  // The object as it is stored; null where it is not there.
  Json stored(std::string_view target);
  // metadata.managedFields without times, "MANAGER OPERATION[ SUBRESOURCE]: FIELDS" a line.
  std::string managers(std::string_view target);
  void pass(std::chrono::seconds time) { now = now + time; }

  server::ServedKinds kinds;
  server::ObjectStore store{10, 5'000, server::ObjectStore::Form::kTexts};
  Time now = *Time::parse("2026-01-01T00:00:00Z");
  std::string user_agent = "tester/1.0";

 private:
  int uids_ = 0;
  int suffixes_ = 0;

 public:
  server::Api api;
};

// The paths that tests use.
inline constexpr std::string_view kConfigMapsPath = "/api/v1/namespaces/n/configmaps";
inline constexpr std::string_view kWidgetsPath = "/apis/example.com/v1/namespaces/n/widgets";
inline constexpr std::string_view kPodsPath = "/api/v1/namespaces/n/pods";

// "422 Invalid: MESSAGE" of a Status, "200" of anything else.
std::string outcome(const server::Response& response);
Json body(const server::Response& response);

}  // namespace kube::test
