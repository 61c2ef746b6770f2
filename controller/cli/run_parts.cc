#include "controller/cli/run_parts.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "api/runtime.hh"
#include "controller/cli/cluster.hh"
#include "kube/client/clock.hh"
#include "runtimes/builtin/builtin_runtimes.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

bool is_for_torch(const Json& runtime) {
  return runtime.get_path({"spec", "mlPolicy", "torch"}).is_object();
}

FoundRuntime found_in(const std::vector<Json>& all, std::string name) {
  FoundRuntime found{{kClusterTrainingRuntimes, std::move(name)}, false, false};
  for (const Json& runtime : all) {
    if (kube::ObjectMeta::of(runtime).name != found.choice.name) continue;
    found.is_torch = is_for_torch(runtime);
    found.is_known = true;
  }
  return found;
}

}  // namespace

std::string name_of_run(const JobFlags& flags) {
  if (!flags.name.empty()) return flags.name;
  // These are the letters and digits of Kubernetes' own random names, which form no words.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  kube::SystemRandom random;
  std::string name = "run-";
  for (int i = 0; i < 5; ++i) name += kLetters[random.next() % kLetters.size()];
  return name;
}

Task<Result<FoundRuntime>> find_runtime(kube::ApiClient& client, JobFlags flags, std::string ns) {
  RuntimeChoice named = named_runtime(flags);
  if (!flags.runtime.empty()) {
    kube::ObjectKey key{named.resource.namespaced ? ns : "", named.name};
    auto runtime = co_await client.get(named.resource, std::move(key));
    if (runtime) {
      FoundRuntime found{named, is_for_torch(*runtime), true};
      co_return found;
    }
    const std::string where = "--runtime " + flags.runtime;
    if (runtime.error().code == ErrorCode::kForbidden) co_return find_builtin_runtime(flags);
    if (runtime.error().code != ErrorCode::kNotFound)
      co_return tl::unexpected(runtime.error().at(where));
  }
  auto all = co_await list_all(client, kClusterTrainingRuntimes, "", "");
  if (!all && all.error().code == ErrorCode::kForbidden && flags.runtime.empty())
    co_return find_builtin_runtime(flags);
  if (!all && all.error().code == ErrorCode::kNotFound)
    co_return kube::fail(ErrorCode::kNotFound,
                         "the cluster has no kind ClusterTrainingRuntime: is a Trainer installed? "
                         "`trainer check` says what is missing");
  if (!all) co_return tl::unexpected(all.error().at("the ClusterTrainingRuntimes"));
  if (flags.runtime.empty()) {
    auto name = choose_runtime(flags.command, *all);
    if (!name) co_return tl::unexpected(name.error());
    co_return found_in(*all, std::move(*name));
  }
  std::vector<std::string> names;
  for (const Json& runtime : *all) names.push_back(kube::ObjectMeta::of(runtime).name);
  std::ranges::sort(names);
  co_return kube::fail(
      ErrorCode::kNotFound,
      "--runtime {}: there is no such {}: name one of the cluster's "
      "ClusterTrainingRuntimes: {}",
      flags.runtime, named.resource.kind,
      names.empty() ? "there are none" : fmt::format("{}", fmt::join(names, ", ")));
}

Result<FoundRuntime> find_builtin_runtime(const JobFlags& flags) {
  const auto all = builtin_runtimes();
  if (flags.runtime.empty()) {
    auto name = choose_runtime(flags.command, all);
    if (!name) return tl::unexpected(name.error());
    return found_in(all, std::move(*name));
  }
  const RuntimeChoice named = named_runtime(flags);
  if (named.resource == kClusterTrainingRuntimes) return found_in(all, named.name);
  return FoundRuntime{named, false, false};
}

}  // namespace trainer
