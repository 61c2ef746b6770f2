// The environment and the command of a container are made by kubelet's rules from the pod and from
// the ConfigMaps and Secrets that it names. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"

namespace trainer::node {

// A projected volume asks for a token like this.
struct TokenSource {
  std::string audience;
  std::int64_t seconds = 0;  // the token expires after this time
  friend auto operator<=>(const TokenSource&, const TokenSource&) = default;
};
TokenSource token_source_of(const kube::Json& service_account_token);

// These are names of ConfigMaps, Secrets and PersistentVolumeClaims that a pod uses, also optional
// ones, and its tokens.
struct SourceNames {
  std::set<std::string> claims;
  std::set<std::string> config_maps;
  std::set<std::string> secrets;
  std::set<TokenSource> tokens;
};
SourceNames sources_of(const kube::Json& pod);

// These are the objects that were found, by name, and the tokens. An object that does not exist is
// missing.
struct Sources {
  std::map<std::string, kube::Json, std::less<>> claims;
  std::map<std::string, kube::Json, std::less<>> config_maps;
  std::map<std::string, kube::Json, std::less<>> secrets;
  std::map<TokenSource, std::string> tokens;
};

// Returns the data of a ConfigMap (with binaryData) or of a Secret, decoded.
std::map<std::string, std::string> data_of(const kube::Json& object, bool is_secret);

// A pod may read this of its node by the downward API.
struct PodFacts {
  std::string node_name;
  std::string host_address;
  std::string pod_address;
  kube::ResourceList allocatable;  // the node's amounts: limits of containers that state none
};

// Returns `metadata.annotations['key']` and the other fields of the downward API. Errors:
// kUnsupported with the path.
kube::Result<std::string> field_value(const kube::Json& pod, std::string_view path,
                                      const PodFacts& facts);
// Returns the value of a ResourceFieldSelector; `container` is used if it names none.
kube::Result<std::string> resource_value(const kube::Json& pod, const kube::Json& container,
                                         const kube::Json& selector, const PodFacts& facts);

// Returns envFrom and env of a container. Errors: kNotFound for a source or key that does not exist
// (yet), kUnsupported for one that is not known; both name the container and the variable.
kube::Result<kube::StringMap> declared_env(const kube::Json& pod, const kube::Json& container,
                                           const Sources& sources, const PodFacts& facts);

// Replaces $(NAME) by the variable's value, and $$ by $. A text that is no variable stays.
std::string expand(std::string_view text, const kube::StringMap& variables);

// Returns the environment that containers begin with: the daemon's own, without variables that a
// training or a cluster sets, and without those that are not UTF-8.
kube::StringMap base_environment(const char* const* variables);

}  // namespace trainer::node
