// This file checks names and paths in pods that become a host name, a line of a hosts file or a
// file (k8s.io/kubernetes, pkg/apis/core/validation/validation.go).
#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "kube/model/check_items.hh"
#include "kube/model/names.hh"
#include "kube/model/pod_checks.hh"

namespace kube {
namespace {

using Problems = std::vector<std::string> (*)(std::string_view name);

// An absent member is no error.
void check_grammar(const Json& object, std::string_view member, std::string_view path,
                   Problems problems_of, FieldErrors& errors) {
  const std::string_view name = object.get_string(member);
  if (name.empty()) return;
  for (std::string& problem : problems_of(name))
    errors.push_back(invalid(join_field(path, member), name, std::move(problem)));
}

bool is_ip(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

void check_aliases(const Json& spec, std::string_view path, FieldErrors& errors) {
  check_items(spec, "hostAliases", path, errors, [&](const Json& alias, const std::string& at) {
    const std::string ip(alias.get_string("ip"));
    if (!is_ip(ip))
      errors.push_back(invalid(join_field(at, "ip"), ip,
                               "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    check_items(alias, "hostnames", at, errors, [&](const Json& name, const std::string& of_name) {
      if (!name.is_string()) return;
      for (std::string& problem : dns1123_subdomain_problems(name.as_string()))
        errors.push_back(invalid(of_name, name, std::move(problem)));
    });
  });
}

bool has_backstep(std::string_view path) {
  return ("/" + std::string(path) + "/").find("/../") != std::string::npos;
}

// Checks a file of a volume. Names such as "..data" are the kubelet's.
void check_file(const Json& item, const std::string& at, FieldErrors& errors) {
  const std::string_view file = item.get_string("path");
  const std::string path = join_field(at, "path");
  if (file.empty()) errors.push_back(required(path, ""));
  if (file.starts_with('/')) errors.push_back(invalid(path, file, "must be a relative path"));
  if (has_backstep(file))
    errors.push_back(invalid(path, file, "must not contain '..'"));
  else if (file.starts_with(".."))
    errors.push_back(invalid(path, file, "must not start with '..'"));
}

void check_mode(const Json& owner, std::string_view member, std::string_view path,
                FieldErrors& errors) {
  const std::int64_t mode = owner.get_int(member);
  if (mode < 0 || mode > 0777)
    errors.push_back(invalid(join_field(path, member), mode,
                             "must be a number between 0 and 0777 (octal), both inclusive"));
}

// Checks a volume, or one source of a projected one.
void check_source(const Json& volume, const std::string& path, FieldErrors& errors) {
  for (const char* kind : {"configMap", "secret", "downwardAPI"}) {
    const Json& source = volume.get(kind);
    const std::string at = join_field(path, kind);
    check_mode(source, "defaultMode", at, errors);
    check_items(source, "items", at, errors, [&](const Json& item, const std::string& of_item) {
      if (kind != std::string_view("downwardAPI") && item.get_string("key").empty())
        errors.push_back(required(join_field(of_item, "key"), ""));
      check_file(item, of_item, errors);
      check_mode(item, "mode", of_item, errors);
    });
  }
}

void check_files(const Json& spec, std::string_view path, FieldErrors& errors) {
  check_items(spec, "volumes", path, errors, [&](const Json& volume, const std::string& at) {
    check_source(volume, at, errors);
    const std::string projected = join_field(at, "projected");
    check_mode(volume.get("projected"), "defaultMode", projected, errors);
    check_items(volume.get("projected"), "sources", projected, errors,
                [&](const Json& source, const std::string& of_source) {
                  check_source(source, of_source, errors);
                });
    const Json& host = volume.get("hostPath");
    const std::string of_host = join_field(at, "hostPath");
    if (const std::string_view folder = host.get_string("path"); has_backstep(folder))
      errors.push_back(invalid(join_field(of_host, "path"), folder, "must not contain '..'"));
    check_word(host, "type", of_host,
               {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice",
                "BlockDevice"},
               errors);
  });
}

}  // namespace

void check_pod_names(const Json& spec, std::string_view path, FieldErrors& errors) {
  for (const char* name : {"hostname", "subdomain"})
    check_grammar(spec, name, path, dns1123_label_problems, errors);
  for (const char* name : {"nodeName", "priorityClassName", "runtimeClassName"})
    check_grammar(spec, name, path, dns1123_subdomain_problems, errors);
  check_aliases(spec, path, errors);
  check_files(spec, path, errors);
}

}  // namespace kube
