// Webhooks as kinds register them, and webhook configurations. Pure except for the handlers.
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

// A CEL expression that the API server evaluates before it sends a review.
struct MatchCondition {
  std::string_view name;
  std::string_view expression;
};

// One entry of a webhook configuration.
struct Webhook {
  std::string configuration;  // the name of the object that holds it
  bool is_mutating = false;
  std::string name;
  std::string path;
  kube::Resource resource;
  bool is_for_updates = true;  // besides creates
  std::vector<MatchCondition> conditions;
  // Objects that are being deleted must be able to lose their finalizers, also where the rules have
  // changed since they were created.
  bool skips_deletion = true;
  // This controller's own writes (field manager "trainer") are allowed without a request: the
  // builder has filled in the defaults and applied the rules.
  bool skips_own_writes = false;
  kube::Json object_selector;  // null: all objects
  std::string_view failure_policy = "Fail";
  std::optional<int> timeout_seconds;
};

struct WebhookHandler {
  // Errors: lookups that failed; the client may try again.
  using Handle = std::function<kube::Task<kube::Result<AdmissionAnswer>>(AdmissionRequest request,
                                                                         AdmissionReader& reader)>;
  std::string path;
  Handle handle;
  // False: requests are allowed unchanged, since another controller's webhooks validate them.
  // Called on the serving thread; null: always active.
  std::function<bool()> is_active;
};

// The webhooks of a kind.
struct AdmissionRegistration {
  std::vector<Webhook> webhooks;
  std::vector<WebhookHandler> handlers;
  // Collections whose objects are in the AdmissionState.
  std::vector<kube::Resource> reads;
  // False: an administrator installs the webhooks separately.
  bool is_published = true;
};

struct WebhookConfiguration {
  kube::Resource resource;
  kube::Json object;
  kube::ObjectKey key() const {
    return {"", std::string(object.find_path({"metadata"})->get_string("name"))};
  }
};

// How the API server reaches the webhooks: by a URL, or by a Service.
struct WebhookTarget {
  std::string url;  // "https://HOST:PORT"; empty: the service
  kube::ObjectKey service;
  std::string ca_pem;  // empty: left out, CaInjector fills it in
};

// The configuration objects that hold these webhooks, in their order. `username`: of this
// controller, as the API server knows it; "": no exception for own writes.
std::vector<WebhookConfiguration> webhook_configurations(const std::vector<Webhook>& webhooks,
                                                         const WebhookTarget& target,
                                                         const std::string& username);

// RFC 6902 operations that set the CA of every webhook of this stored configuration; an empty array
// when all have it. A "test" of its name comes before each, because the list may change in between.
kube::Json ca_bundle_patch(const kube::Json& configuration, const std::string& ca_pem);

}  // namespace trainer
