#include "controller/cli/documents.hh"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>
#include <sstream>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

kube::Result<std::string> read_text(const std::string& file, std::istream& standard_input) {
  std::ostringstream text;
  if (file == "-") {
    text << standard_input.rdbuf();
    return std::move(text).str();
  }
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return kube::fail(kube::ErrorCode::kNotFound, "{}: this is a folder: name the files in it",
                      file);
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return kube::fail(kube::ErrorCode::kNotFound, "{}: the file cannot be read", file);
  }
  text << stream.rdbuf();
  return std::move(text).str();
}

bool is_object_of_kubernetes(const kube::Json& document) {
  return !document.get_string("apiVersion").empty() && !document.get_string("kind").empty();
}

}  // namespace

void print_documents(const std::vector<kube::Json>& documents, OutputFormat format,
                     std::ostream& out) {
  if (format == OutputFormat::kJson) {
    const kube::Json list = kube::Json::object(
        {{"apiVersion", "v1"}, {"kind", "List"}, {"items", kube::Json(documents)}});
    out << kube::print_json_pretty(list) << '\n';
    return;
  }
  const char* separator = "";
  for (const kube::Json& document : documents)
    out << std::exchange(separator, "---\n") << kube::print_visible_yaml(document);
}

void print_value(const kube::Json& value, std::string_view text, OutputFormat format,
                 std::ostream& out) {
  if (format == OutputFormat::kText) {
    out << text;
  } else if (format == OutputFormat::kYaml) {
    out << kube::print_visible_yaml(value);
  } else {
    out << kube::print_json_pretty(value) << '\n';
  }
}

bool is_finished(const kube::Json& trainjob) {
  return kube::has_condition(trainjob, "Complete") || kube::has_condition(trainjob, "Failed");
}

std::string title_of(const kube::Json& object) {
  const auto meta = kube::ObjectMeta::of(object);
  const std::string name = meta.name.empty() ? meta.generate_name + "*" : meta.key().to_string();
  return fmt::format("{} {}", object.get_string("kind", "object"),
                     name == "*" ? "without a name" : name);
}

kube::Result<std::vector<kube::Json>> read_documents(const std::string& file,
                                                     std::istream& standard_input) {
  const std::string shown = file == "-" ? "standard input" : file;
  auto text = read_text(file, standard_input);
  if (!text) return tl::unexpected(text.error());
  auto documents = kube::parse_yaml_documents(*text);
  if (!documents) return tl::unexpected(documents.error().at(shown));
  std::vector<kube::Json> objects;
  std::size_t number = 0;
  for (kube::Json& document : *documents) {
    ++number;
    if (!is_object_of_kubernetes(document)) {
      return kube::fail(kube::ErrorCode::kParse,
                        "{}: document {} is no Kubernetes object: apiVersion or kind is missing",
                        shown, number);
    }
    if (document.get_string("kind") == "List") {
      for (const kube::Json& item : document.get_array("items")) objects.push_back(item);
    } else {
      objects.push_back(std::move(document));
    }
  }
  return objects;
}

}  // namespace trainer
