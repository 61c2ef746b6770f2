#include "local/node/names.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace trainer::node {

namespace {

constexpr std::size_t kMaxHostname = 63;
constexpr std::uint32_t kAddresses = 1U << 22;

// The digest is FNV-1a, so that it is the same in each build.
std::uint32_t digest(std::string_view text) {
  std::uint32_t hash = 2'166'136'261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  return hash;
}

std::string address(std::uint32_t number) {
  return fmt::format("127.{}.{}.{}", 64 + (number >> 16), (number >> 8) & 255, number & 255);
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

// "a.b." ends a sentence, or is a full name: its last dot belongs to neither.
bool ends_word(std::string_view text, std::size_t at) {
  if (at >= text.size() || !is_of_name(text[at])) return true;
  return text[at] == '.' && (at + 1 >= text.size() || !is_of_name(text[at + 1]));
}

}  // namespace

PodName PodName::of(const kube::Json& pod) {
  const kube::Json& metadata = pod.get("metadata");
  const kube::Json& spec = pod.get("spec");
  std::string hostname(spec.get_string("hostname"));
  if (hostname.empty()) hostname = metadata.get_string("name");
  hostname.resize(std::min(hostname.size(), kMaxHostname));
  while (hostname.ends_with('-') || hostname.ends_with('.')) hostname.pop_back();
  return {std::string(metadata.get_string("namespace")), std::move(hostname),
          std::string(spec.get_string("subdomain"))};
}

std::vector<std::string> PodName::names() const {
  if (subdomain.empty()) return {hostname};
  const std::string name = hostname + "." + subdomain;
  return {fmt::format("{}.{}.svc.cluster.local", name, ns), fmt::format("{}.{}.svc", name, ns),
          fmt::format("{}.{}", name, ns), name};
}

const std::string& AddressTable::address_of(const PodName& name) {
  const auto known = addresses_.find(name);
  if (known != addresses_.end()) return known->second;
  std::uint32_t number = digest(name.ns + "/" + name.names().front()) % kAddresses;
  while (!taken_.insert(address(number)).second) number = (number + 1) % kAddresses;
  return addresses_[name] = address(number);
}

void AddressTable::keep(const PodName& name, const std::string& kept) {
  release(name);
  addresses_[name] = kept;
  taken_.insert(kept);
}

void AddressTable::release(const PodName& name) {
  const auto known = addresses_.find(name);
  if (known == addresses_.end()) return;
  taken_.erase(known->second);
  addresses_.erase(known);
}

Replacements aliases_of(const kube::Json& pod) {
  Replacements aliases;
  for (const kube::Json& alias : pod.get("spec").get_array("hostAliases"))
    for (const kube::Json& name : alias.get_array("hostnames"))
      aliases.emplace(name.as_string(), alias.get_string("ip"));
  return aliases;
}

std::string hosts_text(const PodName& own, const std::string& own_address,
                       const std::map<PodName, std::string>& neighbours,
                       const Replacements& aliases, std::string_view hosts_of_host) {
  std::string text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
  std::vector<std::string> names = own.names();
  if (!own.subdomain.empty()) names.push_back(own.hostname);
  text += fmt::format("{}\t{}\n", own_address, fmt::join(names, " "));
  for (const auto& [name, address] : neighbours)
    if (name != own && !name.subdomain.empty())
      text += fmt::format("{}\t{}\n", address, fmt::join(name.names(), " "));
  for (const auto& [name, address] : aliases) text += fmt::format("{}\t{}\n", address, name);
  text += "# of this machine\n";
  text += hosts_of_host;
  return text;
}

std::string nsswitch_text(std::string_view nsswitch_of_host) {
  std::string text;
  while (!nsswitch_of_host.empty()) {
    const auto end = std::min(nsswitch_of_host.find('\n'), nsswitch_of_host.size());
    const std::string_view line = nsswitch_of_host.substr(0, end);
    if (!line.starts_with("hosts:")) text += std::string(line) + "\n";
    nsswitch_of_host.remove_prefix(std::min(end + 1, nsswitch_of_host.size()));
  }
  return text + "hosts: files dns\n";
}

std::string replace_words(std::string text, const Replacements& words) {
  std::vector<const Replacements::value_type*> sorted;
  for (const auto& word : words)
    if (text.find(word.first) != std::string::npos) sorted.push_back(&word);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->first.size() > b->first.size(); });
  for (const auto* word : sorted) {
    const std::string& name = word->first;
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
      const bool is_word =
          (at == 0 || !is_of_name(text[at - 1])) && ends_word(text, at + name.size());
      if (is_word) text.replace(at, name.size(), word->second);
      at += is_word ? word->second.size() : name.size();
    }
  }
  return text;
}

}  // namespace trainer::node
