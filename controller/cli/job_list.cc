#include "controller/cli/job_list.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/views/created_version.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Task;

constexpr std::size_t kPageSize = 500;

// The API server refuses before it says that it has no such kind. All users may read which kinds it
// has, so that only those are reported that exist.
Task<bool> is_served(kube::ApiClient& client, kube::Resource resource) {
  kube::Resource group = resource;
  group.plural.clear();
  group.namespaced = false;
  const auto list = co_await client.get(std::move(group), kube::ObjectKey());
  if (!list) co_return list.error().code != ErrorCode::kNotFound;
  const auto& all = list->get_array("resources");
  co_return std::any_of(all.begin(), all.end(), [&resource](const Json& each) {
    return each.get_string("name") == resource.plural;
  });
}

}  // namespace

bool is_job_kind(const KindRegistration& kind) {
  return kind.why.has_value() && kind.jobs.has_value();
}

std::string scope_of(const std::string& ns) {
  return ns.empty() ? "all namespaces" : "namespace " + ns;
}

const kube::OwnerReference* owner_among_jobs(const Registry& registry,
                                             const kube::ObjectMeta& meta) {
  const kube::OwnerReference* const owner = meta.controller();
  const auto owns = [owner](const KindRegistration& each) {
    return owner != nullptr && is_job_kind(each) &&
           owner->kind == each.controller.resource().kind &&
           owner->api_version == each.controller.resource().api_version();
  };
  return std::any_of(registry.begin(), registry.end(), owns) ? owner : nullptr;
}

bool is_of_version(const Registry& registry, const KindRegistration& kind, const Json& object) {
  const auto is_of_other = [&kind,
                            version = created_version(object)](const KindRegistration& each) {
    const kube::Resource& here = kind.controller.resource();
    const kube::Resource& there = each.controller.resource();
    return is_job_kind(each) && share_crd(here, there) && there.version != here.version &&
           there.version == version;
  };
  return std::none_of(registry.begin(), registry.end(), is_of_other);
}

Task<JobsRead> read_jobs(kube::ApiClient& client, const Registry& registry, std::string ns,
                         std::size_t max_pages, OnJob on_job) {
  JobsRead read;
  std::vector<std::string> forbidden;
  for (const KindRegistration& kind : registry) {
    if (!is_job_kind(kind)) continue;
    const kube::Resource& resource = kind.controller.resource();
    std::function<void(std::string_view)> on_item = [&](std::string_view text) {
      const auto object = kube::parse_json(text);
      if (object && is_of_version(registry, kind, *object)) on_job(kind, *object);
    };
    const auto listed = co_await client.list(resource, ns, "", std::move(on_item), max_pages);
    if (listed) {
      read.kinds.push_back(&kind);
      if (!listed->continue_token.empty())
        read.notes.push_back(fmt::format("There are more {} than the {} that were read.",
                                         resource.plural, kPageSize * max_pages));
      continue;
    }
    if (listed.error().code == ErrorCode::kNotFound) continue;
    if (listed.error().code != ErrorCode::kForbidden) {
      read.failure = listed.error();
      read.notes.push_back("The API server does not answer as it should: " +
                           listed.error().message);
      break;
    }
    if (co_await is_served(client, resource))
      forbidden.push_back(resource.plural + "." + resource.group);
  }
  if (!forbidden.empty())
    read.notes.push_back(fmt::format("You may not list {} in {}{}.", fmt::join(forbidden, ", "),
                                     scope_of(ns),
                                     ns.empty() ? ": choose a namespace by --namespace" : ""));
  if (read.kinds.empty() && forbidden.empty() && !read.failure)
    read.notes.emplace_back("The cluster has no kind of job that this program knows.");
  co_return read;
}

}  // namespace trainer
