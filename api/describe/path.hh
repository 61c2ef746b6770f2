// A path is that of a value in a document. It is made into text only for an error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kube/model/field_error.hh"

namespace trainer::wire {

// The path is a list linked from the value up to the document's root. Each element is on the stack
// of the call that reads it, so a read without errors makes no text at all.
class FieldPath {
 public:
  // Makes the root, with the name by which errors call it ("" or "spec.template.spec").
  explicit FieldPath(std::string_view root) : name_(root) {}
  FieldPath(const FieldPath& above, std::string_view member) : above_(&above), name_(member) {}
  FieldPath(const FieldPath& above, std::size_t index)
      : above_(&above), index_(index), is_item_(true) {}

  // "spec.trainer.env[2]"
  std::string to_string() const {
    if (above_ == nullptr) return std::string(name_);
    return is_item_ ? kube::join_index(above_->to_string(), index_)
                    : kube::join_field(above_->to_string(), name_);
  }

 private:
  const FieldPath* above_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  bool is_item_ = false;
};

}  // namespace trainer::wire
