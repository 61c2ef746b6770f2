// `render` prints what the controller would create, from files alone.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <ostream>
#include <sstream>
#include <utility>

#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/renderer.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::Json;

// Otherwise the text behind a line feed would be no comment.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

void print_json(const Renderer& renderer, const RenderOptions& options, Console& console) {
  Json::Array items;
  Json::Array explanations;
  for (const RenderedObject& item : renderer.rendered()) {
    items.push_back(item.object);
    for (const Explanation& line : item.explanations) {
      explanations.push_back(Json::object(
          {{"object", title_of(item.object)}, {"path", line.path}, {"source", line.source}}));
    }
  }
  Json list =
      Json::object({{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json(std::move(items))}});
  if (options.is_explained) list.set("explanations", Json(std::move(explanations)));
  console.out << kube::print_json_pretty(list) << '\n';
}

void print(const Renderer& renderer, const RenderOptions& options, Console& console) {
  if (options.format == OutputFormat::kJson) return print_json(renderer, options, console);
  const char* separator = "";
  for (const RenderedObject& item : renderer.rendered()) {
    console.out << std::exchange(separator, "---\n") << kube::print_visible_yaml(item.object);
    if (item.explanations.empty()) continue;
    console.out << "# Where the values above come from:\n";
    for (const Explanation& line : item.explanations) {
      console.out << "#   " << on_one_line(line.path) << "  <-  " << on_one_line(line.source)
                  << '\n';
    }
  }
}

// The files that the configuration names are for the controller, and are not read.
kube::Result<ParsedConfiguration> read_settings(const RenderOptions& options) {
  std::ostringstream text;
  if (!options.config_file.empty()) {
    std::ifstream file(options.config_file, std::ios::binary);
    text << file.rdbuf();
    if (!file)
      return kube::fail(kube::ErrorCode::kInvalid, "--config {}: the file cannot be read",
                        options.config_file);
  }
  return parse_configuration(text.str(), options.feature_gates);
}

}  // namespace

int run_render(const RenderOptions& options, const Registry& registry, Console& console) {
  auto settings = read_settings(options);
  if (!settings) {
    console.err << settings.error().message << '\n';
    return kExitUsage;
  }
  for (std::string& warning : concurrency_warnings(settings->configuration, registry))
    settings->warnings.push_back(std::move(warning));
  for (const std::string& warning : settings->warnings)
    console.err << "warning: " << warning << '\n';
  Renderer renderer({options.is_explained, options.has_jobs}, std::move(settings->configuration),
                    registry, console);
  for (const std::string& file : options.files) {
    auto documents = read_documents(file, console.in);
    if (!documents) {
      console.err << documents.error().message << '\n';
      return kExitRefused;
    }
    for (Json& document : *documents) renderer.add(std::move(document));
  }
  renderer.render_all("render");
  print(renderer, options, console);
  return renderer.is_refused() ? kExitRefused : kExitDone;
}

}  // namespace trainer
