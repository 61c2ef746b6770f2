// These are the names and addresses of pods on one machine. A name keeps its address: a pod that
// replaces another of its name has it again, and it is known before that pod exists. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::node {

struct PodName {
  std::string ns;
  std::string hostname;
  std::string subdomain;  // may be empty: then no other pod finds it by name

  static PodName of(const kube::Json& pod);
  // Returns its fully qualified name first: H.S.NS.svc.cluster.local, H.S.NS.svc, H.S.NS, H.S;
  // without a subdomain the hostname alone.
  std::vector<std::string> names() const;
  friend auto operator<=>(const PodName&, const PodName&) = default;
};

// The addresses are those of 127.64.0.0/10, by a digest of the name: so a daemon that starts again
// finds the same ones. If two names have the same, the second gets the next free one.
class AddressTable {
 public:
  const std::string& address_of(const PodName& name);
  // Reserves the address of an adopted pod.
  void keep(const PodName& name, const std::string& address);
  void release(const PodName& name);

 private:
  std::map<PodName, std::string> addresses_;
  std::set<std::string> taken_;
};

using Replacements = std::map<std::string, std::string>;

// Returns names and addresses of spec.hostAliases.
Replacements aliases_of(const kube::Json& pod);

// Returns the text of /etc/hosts of a pod: `own`, its neighbours, its aliases, and the lines of the
// host's file.
std::string hosts_text(const PodName& own, const std::string& own_address,
                       const std::map<PodName, std::string>& neighbours,
                       const Replacements& aliases, std::string_view hosts_of_host);
// Returns the host's nsswitch.conf with names from /etc/hosts first.
std::string nsswitch_text(std::string_view nsswitch_of_host);

// Replaces words of a text, the longest first. A word ends before a character that cannot be in a
// name.
std::string replace_words(std::string text, const Replacements& words);

}  // namespace trainer::node
