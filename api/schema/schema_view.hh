// This is a schema with its reference resolved: keywords beside the reference take precedence.
#pragma once

#include <string_view>

#include "api/schema/kubernetes_types.hh"
#include "kube/model/json.hh"

namespace trainer {

// Refers to the schema, which must live longer.
class SchemaView {
 public:
  explicit SchemaView(const kube::Json& schema)
      : own_(schema), target_(KubernetesTypes::instance().target_of(schema)) {}

  const kube::Json* find(std::string_view keyword) const {
    const kube::Json* found = own_.find(keyword);
    return found == nullptr && target_ != nullptr ? target_->find(keyword) : found;
  }
  std::string_view type() const { return text("type"); }
  std::string_view text(std::string_view keyword) const {
    const kube::Json* found = find(keyword);
    return found != nullptr && found->is_string() ? std::string_view(found->as_string())
                                                  : std::string_view();
  }
  bool is_set(std::string_view keyword) const {
    const kube::Json* found = find(keyword);
    return found != nullptr && found->is_bool() && found->as_bool();
  }
  const kube::Json::Array& list(std::string_view keyword) const {
    return (own_.find(keyword) == nullptr && target_ != nullptr ? *target_ : own_)
        .get_array(keyword);
  }
  // Returns the schema of a member: a declared property, or additionalProperties; nullptr for one
  // that is not declared.
  const kube::Json* member(std::string_view name) const {
    const kube::Json* properties = find("properties");
    if (properties != nullptr)
      if (const kube::Json* property = properties->find(name)) return property;
    return find("additionalProperties");
  }

 private:
  const kube::Json& own_;
  const kube::Json* target_;
};

}  // namespace trainer
