#include "controller/status/report.hh"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "kube/model/field_error.hh"
#include "kube/model/json_text.hh"
#include "kube/model/names.hh"
#include "kube/model/time.hh"

namespace trainer {

using kube::Json;

namespace {

constexpr std::size_t kMaxMetrics = 256;
constexpr kube::JsonLimits kLimits{.max_values = 10'000};
constexpr std::size_t kMaxMetricText = 64;
constexpr std::string_view kPath = "status.trainerStatus";

tl::unexpected<kube::Error> unreadable(std::string_view why) {
  return kube::fail(kube::ErrorCode::kParse, std::string(why));
}

// Returns the number of characters, not bytes: the API server counts these.
std::size_t characters_of(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  return count;
}

bool is_good_text(const Json* value) {
  if (value == nullptr || !value->is_string()) return false;
  const std::size_t length = characters_of(value->as_string());
  return length >= 1 && length <= kMaxMetricText;
}

// Returns nullopt if the member is absent; sets `is_readable` to false if it is not a 32-bit
// integer.
std::optional<std::int64_t> read_int32(const Json& status, std::string_view name,
                                       bool& is_readable) {
  const Json* value = status.find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_int() || !std::in_range<std::int32_t>(value->as_int())) {
    is_readable = false;
    return std::nullopt;
  }
  return value->as_int();
}

// Returns the metrics that the API accepts, in their order.
std::optional<Json> read_metrics(const Json& metrics, std::size_t& dropped) {
  if (!metrics.is_array()) return std::nullopt;
  Json kept = Json::array();
  for (const Json& metric : metrics.as_array()) {
    const Json* name = metric.find("name");
    const Json* value = metric.find("value");
    if (!is_good_text(name) || !is_good_text(value) || kept.size() == kMaxMetrics) {
      ++dropped;
      continue;
    }
    kept.push_back(Json::object({{"name", *name}, {"value", *value}}));
  }
  return kept;
}

kube::FieldErrors check(std::optional<std::int64_t> progress, std::optional<std::int64_t> remaining,
                        const Json& status, bool has_time) {
  kube::FieldErrors errors;
  if (progress && (*progress < 0 || *progress > 100)) {
    errors.push_back(kube::invalid(kube::join_field(kPath, "progressPercentage"), *progress,
                                   "must be between 0 and 100"));
  }
  if (remaining && *remaining < 0) {
    errors.push_back(kube::invalid(kube::join_field(kPath, "estimatedRemainingSeconds"), *remaining,
                                   "must be greater than or equal to 0"));
  }
  if (!has_time) {
    errors.push_back(kube::invalid(std::string(kPath), status,
                                   "lastUpdatedTime is required when trainerStatus is present"));
  }
  return errors;
}

}  // namespace

kube::Result<Report> read_report(std::string_view body, std::string_view trainjob) {
  const auto document = kube::parse_json(body, kLimits);
  if (!document) return unreadable(document.error().message);
  if (!document->is_object()) return unreadable("the body must be a JSON object");
  Report report;
  const Json* status = document->find("trainerStatus");
  if (status == nullptr || status->is_null()) return report;
  if (!status->is_object()) return unreadable("trainerStatus must be an object");

  bool is_readable = true;
  const auto progress = read_int32(*status, "progressPercentage", is_readable);
  const auto remaining = read_int32(*status, "estimatedRemainingSeconds", is_readable);
  if (!is_readable)
    return unreadable("progressPercentage and estimatedRemainingSeconds must be whole numbers");
  std::optional<kube::Time> time;
  const Json* time_text = status->find("lastUpdatedTime");
  const bool has_time = time_text != nullptr && !time_text->is_null();
  if (has_time) {
    time = time_text->is_string() ? kube::Time::parse(time_text->as_string()) : std::nullopt;
    if (!time) return unreadable("lastUpdatedTime must be a time such as 2026-08-20T10:00:00Z");
  }
  Json written = Json::object();
  const Json* metrics = status->find("metrics");
  if (metrics != nullptr && !metrics->is_null()) {
    auto kept = read_metrics(*metrics, report.dropped_metrics);
    if (!kept) return unreadable("metrics must be a list");
    if (!kept->empty()) written.set("metrics", std::move(*kept));
  }
  const kube::FieldErrors errors = check(progress, remaining, *status, has_time);
  if (!errors.empty()) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "TrainJob.trainer.kubeflow.org \"{}\" is invalid: {}", trainjob,
                      kube::to_string(errors));
  }
  if (progress) written.set("progressPercentage", *progress);
  if (remaining) written.set("estimatedRemainingSeconds", *remaining);
  written.set("lastUpdatedTime", time->to_string());
  report.trainer_status = std::move(written);
  return report;
}

std::optional<kube::ObjectKey> read_report_path(std::string_view path, std::string_view last) {
  constexpr std::string_view kPrefix = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/";
  constexpr std::string_view kMiddle = "/trainjobs/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  // The end is checked after the prefix was removed, since both could share a '/'.
  const std::string suffix = fmt::format("/{}", last);
  if (!path.ends_with(suffix)) return std::nullopt;
  path.remove_suffix(suffix.size());
  const auto at = path.find(kMiddle);
  if (at == std::string_view::npos) return std::nullopt;
  kube::ObjectKey key{std::string(path.substr(0, at)),
                      std::string(path.substr(at + kMiddle.size()))};
  // The names become part of requests to the API server.
  if (!kube::check_dns1123_label(key.ns).empty() ||
      !kube::check_dns1123_subdomain(key.name).empty()) {
    return std::nullopt;
  }
  return key;
}

}  // namespace trainer
