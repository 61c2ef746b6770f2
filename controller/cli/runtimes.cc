#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "api/runtime.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "kube/model/meta.hh"
#include "runtimes/builtin/builtin_runtimes.hh"

namespace trainer {
namespace {

std::string name_of(const kube::Json& object) {
  return kube::ObjectMeta::of(object).name;
}

void print_list(const std::vector<kube::Json>& all, std::ostream& out) {
  out << fmt::format("{:<32} {}\n", "NAME", "FRAMEWORK");
  for (const kube::Json& builtin_runtime : all) {
    const auto meta = kube::ObjectMeta::of(builtin_runtime);
    const auto label = meta.labels.find(kFrameworkLabel);
    out << fmt::format("{:<32} {}\n", meta.name, label == meta.labels.end() ? "-" : label->second);
  }
}

}  // namespace

int run_runtimes(const RuntimesOptions& options, Console& console) {
  const std::vector<kube::Json> all = builtin_runtimes();
  std::vector<kube::Json> chosen;
  for (const std::string& name : options.names) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const kube::Json& object) { return name_of(object) == name; });
    if (at == all.end()) {
      std::vector<std::string> known;
      for (const kube::Json& object : all) known.push_back(name_of(object));
      console.err << fmt::format("blueprint {}: there is none of this name: choose from {}\n", name,
                                 fmt::join(known, ", "));
      return kExitRefused;
    }
    chosen.push_back(*at);
  }
  if (options.names.empty()) chosen = all;
  if (options.is_list) {
    print_list(chosen, console.out);
  } else {
    print_documents(chosen, OutputFormat::kYaml, console.out);
  }
  return kExitDone;
}

}  // namespace trainer
