#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

#include "api/runtime.hh"
#include "controller/cli/apply.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "runtimes/builtin/builtin_runtimes.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

// This label is on runtimes that this command has applied. Upstream's chart has the same label.
constexpr const char* kManagedBy = "trainer.kubeflow.org/managed-by";
constexpr const char* kThis = "runtimes-installer";

std::string runtime_name(const Json& object) {
  return kube::ObjectMeta::of(object).name;
}

std::string shown(const std::string& name) {
  return "clustertrainingruntime.trainer.kubeflow.org/" + name;
}

void print_list(const std::vector<Json>& all, std::ostream& out) {
  out << fmt::format("{:<32} {}\n", "NAME", "FRAMEWORK");
  for (const Json& builtin_runtime : all) {
    const auto meta = kube::ObjectMeta::of(builtin_runtime);
    const auto label = meta.labels.find(kFrameworkLabel);
    out << fmt::format("{:<32} {}\n", meta.name, label == meta.labels.end() ? "-" : label->second);
  }
}

// Returns those of these names, or all. Errors: an unknown name.
Result<std::vector<Json>> chosen_runtimes(const std::vector<std::string>& names) {
  std::vector<Json> all = builtin_runtimes();
  if (names.empty()) return all;
  std::vector<Json> chosen;
  for (const std::string& name : names) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Json& object) { return runtime_name(object) == name; });
    if (at == all.end()) {
      std::vector<std::string> known;
      for (const Json& object : all) known.push_back(runtime_name(object));
      return kube::fail(kube::ErrorCode::kInvalid,
                        "blueprint {}: there is none of this name: choose from {}", name,
                        fmt::join(known, ", "));
    }
    chosen.push_back(*at);
  }
  return chosen;
}

// Returns "registry:5000/a/b" for "registry:5000/a/b:tag" and for "registry:5000/a/b@sha256:...".
std::string_view without_tag(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const auto colon = image.rfind(':');
  const bool is_port =
      colon != std::string_view::npos && image.find('/', colon) != std::string_view::npos;
  return is_port ? image : image.substr(0, colon);
}

// Replaces the images of this name in all containers below; returns how many there were.
std::size_t replace_image(Json& value, std::string_view name, const std::string& image) {
  std::size_t count = 0;
  if (value.is_array()) {
    for (Json& item : value.as_array()) count += replace_image(item, name, image);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.as_object()) {
      if (key != "image" || !member.is_string()) {
        count += replace_image(member, name, image);
      } else if (without_tag(member.as_string()) == name) {
        member = image;
        ++count;
      }
    }
  }
  return count;
}

// Returns the two sides of "KEY=VALUE". Errors name the flag.
Result<std::pair<std::string, std::string>> split(std::string_view flag, const std::string& text) {
  const auto at = text.find('=');
  if (at != std::string::npos && at > 0) return std::pair(text.substr(0, at), text.substr(at + 1));
  return kube::fail(kube::ErrorCode::kInvalid, "{} {}: write NAME=VALUE", flag, text);
}

Result<void> set_images(std::vector<Json>& runtimes, const std::vector<std::string>& images) {
  std::vector<Json> all = builtin_runtimes();
  for (const std::string& each : images) {
    const auto sides = split("--image", each);
    if (!sides) return tl::unexpected(sides.error());
    std::size_t known = 0;  // includes runtimes that were not chosen
    for (Json& runtime : all) known += replace_image(runtime, sides->first, sides->second);
    if (known == 0) {
      return kube::fail(kube::ErrorCode::kInvalid,
                        "--image {}: no built-in runtime has an image of this name: "
                        "`trainer runtimes` prints them",
                        sides->first);
    }
    for (Json& runtime : runtimes) replace_image(runtime, sides->first, sides->second);
  }
  return {};
}

Result<void> set_labels(std::vector<Json>& runtimes, const std::vector<std::string>& labels) {
  for (const std::string& each : labels) {
    const auto sides = split("--label", each);
    if (!sides) return tl::unexpected(sides.error());
    for (Json& runtime : runtimes) runtime["metadata"]["labels"].set(sides->first, sides->second);
  }
  return {};
}

// Returns the ClusterTrainingRuntimes of unfinished TrainJobs, by name. A kind that is not served
// has no objects.
Task<Result<std::set<std::string>>> used_runtimes(kube::ApiClient& client) {
  std::set<std::string> used;
  std::function<void(std::string_view)> on_item = [&used](std::string_view text) {
    const auto job = kube::parse_json(text, kube::kObjectLimits);
    if (!job || is_finished(*job)) return;
    const Json& ref = job->get("spec").get("runtimeRef");
    if (ref.get_string("kind", kClusterTrainingRuntimes.kind) == kClusterTrainingRuntimes.kind)
      used.emplace(ref.get_string("name"));
  };
  const auto page = co_await client.list(kTrainJobs, "", "", std::move(on_item));
  if (!page && page.error().code != kube::ErrorCode::kNotFound)
    co_return tl::unexpected(page.error().at("list TrainJobs"));
  co_return used;
}

Task<Result<void>> remove_unused(kube::ApiClient& client, std::set<std::string> kept,
                                 Console& console) {
  std::vector<kube::ObjectMeta> found;
  std::function<void(std::string_view)> on_item = [&found](std::string_view text) {
    if (const auto runtime = kube::parse_json(text))
      found.push_back(kube::ObjectMeta::of(*runtime));
  };
  std::string query = label_query(kManagedBy, kThis);
  const auto page =
      co_await client.list(kClusterTrainingRuntimes, "", std::move(query), std::move(on_item));
  if (!page && page.error().code != kube::ErrorCode::kNotFound)
    co_return tl::unexpected(page.error().at("list ClusterTrainingRuntimes"));
  const auto used = co_await used_runtimes(client);
  if (!used) co_return tl::unexpected(used.error());
  for (const kube::ObjectMeta& runtime : found) {
    if (kept.contains(runtime.name)) continue;
    if (used->contains(runtime.name)) {
      console.out << shown(runtime.name) << " kept: an unfinished TrainJob uses it\n";
      continue;
    }
    kube::DeleteOptions only_this;
    only_this.uid = runtime.uid;
    const auto removed =
        co_await client.remove(kClusterTrainingRuntimes, runtime.key(), std::move(only_this));
    if (!removed && removed.error().code != kube::ErrorCode::kNotFound)
      co_return tl::unexpected(removed.error().at(shown(runtime.name)));
    console.out << shown(runtime.name) << " deleted\n";
  }
  co_return Result<void>{};
}

Task<Result<void>> install(kube::ApiClient& client, std::vector<Json> runtimes, bool removes_unused,
                           Console& console) {
  std::set<std::string> applied_names;
  for (Json& runtime : runtimes) {
    const std::string name = runtime_name(runtime);
    runtime["metadata"]["labels"].set(kManagedBy, kThis);
    const auto applied =
        co_await apply_object(client, kClusterTrainingRuntimes, std::move(runtime));
    if (!applied) co_return tl::unexpected(applied.error());
    console.out << shown(name) << " applied\n";
    applied_names.insert(name);
  }
  if (!removes_unused) co_return Result<void>{};
  co_return co_await remove_unused(client, std::move(applied_names), console);
}

}  // namespace

int run_runtimes(const RuntimesOptions& options, Console& console) {
  auto chosen = chosen_runtimes(options.names);
  Result<void> set;
  if (chosen) set = set_images(*chosen, options.images);
  if (chosen && set) set = set_labels(*chosen, options.labels);
  if (!chosen || !set) {
    console.err << (chosen ? set.error() : chosen.error()).message << '\n';
    return kExitRefused;
  }
  if (options.is_applied || options.removes_unused) {
    if (!options.is_applied) chosen->clear();
    return in_cluster(options.cluster, console, [&](kube::ApiClient& client) {
      return install(client, std::move(*chosen), options.removes_unused, console);
    });
  }
  if (options.is_list) {
    print_list(*chosen, console.out);
  } else {
    print_documents(*chosen, OutputFormat::kYaml, console.out);
  }
  return kExitDone;
}

}  // namespace trainer
