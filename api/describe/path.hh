// Where a value stands in a document, spelled out only when somebody asks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kube/model/field_error.hh"

namespace trainer::wire {

// A chain of places from the document's root. Each one lives on the stack of the call that reads
// it, so a read without errors builds no path at all.
class Place {
 public:
  // The root, under the name by which errors call it ("" or "spec.template.spec").
  explicit Place(std::string_view root) : name_(root) {}
  Place(const Place& above, std::string_view member) : above_(&above), name_(member) {}
  Place(const Place& above, std::size_t index) : above_(&above), index_(index), is_item_(true) {}

  // "spec.trainer.env[2]"
  std::string path() const {
    if (above_ == nullptr) return std::string(name_);
    return is_item_ ? kube::join_index(above_->path(), index_)
                    : kube::join_field(above_->path(), name_);
  }

 private:
  const Place* above_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  bool is_item_ = false;
};

}  // namespace trainer::wire
