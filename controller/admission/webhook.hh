// Kinds register webhooks, and these become webhook configurations. Pure except for the handlers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/admission/admission_reader.hh"
#include "kube/client/task.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// This is a CEL expression that the API server evaluates before it sends a review.
struct MatchCondition {
  std::string_view name;
  std::string_view expression;
};

// This is one entry of a webhook configuration.
struct Webhook {
  std::string configuration;  // the name of the object that holds it
  bool is_mutating = false;
  std::string name;
  std::string path;
  kube::Resource resource;
  bool is_for_updates = true;  // reviews updates besides creates
  // Requests at other versions of the resource are not converted and sent as well (matchPolicy
  // Exact).
  bool is_exact = false;
  std::vector<MatchCondition> conditions;
  // It must always be possible to remove finalizers from objects that are being deleted, also if
  // the rules have changed since their creation.
  bool skips_deletion = true;
  // This controller's own writes (field manager "trainer") are allowed without a request: the
  // program has filled in the defaults and applied the rules.
  bool skips_own_writes = false;
  kube::Json object_selector;  // null: all objects
  std::string_view failure_policy = "Fail";
  std::optional<int> timeout_seconds;
};

struct WebhookHandler {
  // Errors are lookups that failed; the client may try again.
  using Handle = std::function<kube::Task<kube::Result<AdmissionAnswer>>(AdmissionRequest request,
                                                                         AdmissionReader& reader)>;
  std::string path;
  Handle handle;
  // If it returns false, requests are allowed unchanged, since another controller's webhooks
  // validate them. It is called on the serving thread; if it is null, the webhook is always active.
  std::function<bool()> is_active;
};

// These are the webhooks of a kind.
struct AdmissionRegistration {
  std::vector<Webhook> webhooks;
  std::vector<WebhookHandler> handlers;
  // The objects of these collections are in the AdmissionState.
  std::vector<kube::Resource> reads;
  // If it is false, an administrator installs the webhooks separately.
  bool is_published = true;
};

struct WebhookConfiguration {
  kube::Resource resource;
  kube::Json object;
  kube::ObjectKey key() const {
    return {"", std::string(object.find_path({"metadata"})->get_string("name"))};
  }
};

// The API server reaches the webhooks by a URL, or by a Service.
struct WebhookTarget {
  std::string url;  // "https://HOST:PORT"; empty: the service
  kube::ObjectKey service;
  std::string ca_pem;  // empty: left out, CaInjector fills it in
};

// Returns the configuration objects that hold these webhooks, in their order. `username` is the API
// server's name of this controller; "" makes no exception for own writes.
std::vector<WebhookConfiguration> webhook_configurations(const std::vector<Webhook>& webhooks,
                                                         const WebhookTarget& target,
                                                         const std::string& username);

// Returns RFC 6902 operations that set the CA of every webhook of this stored configuration; an
// empty array if all have it. A "test" of its name comes before each, because the list may change
// in between.
kube::Json ca_bundle_patch(const kube::Json& configuration, const std::string& ca_pem);

}  // namespace trainer
