#include "kube/server/field_set.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/json_text.hh"

namespace kube::server {
namespace {

std::string print_element(std::string_view element) {
  const std::string_view content = element.substr(2);
  if (element.starts_with("f:")) return fmt::format(".{}", content);
  if (element.starts_with("v:")) return fmt::format("[={}]", content);
  std::string text;
  const auto keys = parse_json(content);
  if (keys && keys->is_object())
    for (const auto& [name, value] : keys->as_object())
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, print_json(value));
  return fmt::format("[{}]", text);
}

}  // namespace

std::string print_path(const FieldPath& path) {
  std::string text;
  for (const std::string& element : path) text += print_element(element);
  return text;
}

Result<FieldSet> FieldSet::read(const Json& fields) {
  FieldSet set;
  if (!fields.is_object()) return fail(ErrorCode::kInvalid, "fields must be an object");
  for (const auto& [name, below] : fields.as_object()) {
    if (name == ".") continue;
    if (name.size() < 2 || name[1] != ':')
      return fail(ErrorCode::kInvalid, "missing colon: {}", name);
    if (std::string_view("fkvi").find(name[0]) == std::string_view::npos) continue;
    auto child = read(below);
    if (!child) return child;
    if (child->empty() || below.find(".") != nullptr) child->insert_root();
    set.attach(name, std::move(*child));
  }
  return set;
}

Json FieldSet::to_json() const {
  JsonObject::Members members;
  for (const auto& [element, child] : children_) {
    Json below = child.to_json();
    if (child.is_member_ && !child.children_.empty()) below.set(".", Json::object());
    members.emplace_back(element, std::move(below));
  }
  return JsonObject::of(std::move(members));
}

bool FieldSet::has(const FieldPath& path) const {
  const FieldSet* at = this;
  for (const std::string& element : path)
    if (at = at->below(element); at == nullptr) return false;
  return at->is_member_ && !path.empty();
}

void FieldSet::insert(const FieldPath& path) {
  if (path.empty()) return;
  FieldSet* at = this;
  for (const std::string& element : path) at = &at->children_[element];
  at->is_member_ = true;
}

void FieldSet::attach(const std::string& element, FieldSet child) {
  if (!child.empty()) children_[element] = std::move(child);
}

const FieldSet* FieldSet::below(std::string_view element) const {
  const auto at = children_.find(element);
  return at == children_.end() ? nullptr : &at->second;
}

FieldSet operator|(const FieldSet& a, const FieldSet& b) {
  FieldSet both = a;
  both.is_member_ = a.is_member_ || b.is_member_;
  for (const auto& [element, child] : b.children_) {
    FieldSet& known = both.children_[element];
    known = known | child;
  }
  return both;
}

FieldSet operator&(const FieldSet& a, const FieldSet& b) {
  FieldSet both;
  both.is_member_ = a.is_member_ && b.is_member_;
  for (const auto& [element, child] : a.children_)
    if (const FieldSet* other = b.below(element)) both.attach(element, child & *other);
  return both;
}

FieldSet operator-(const FieldSet& a, const FieldSet& b) {
  FieldSet rest;
  rest.is_member_ = a.is_member_ && !b.is_member_;
  for (const auto& [element, child] : a.children_) {
    const FieldSet* other = b.below(element);
    rest.attach(element, other != nullptr ? child - *other : child);
  }
  return rest;
}

FieldSet FieldSet::without_trees(const FieldSet& roots) const {
  FieldSet rest;
  rest.is_member_ = is_member_;
  for (const auto& [element, child] : children_) {
    const FieldSet* other = roots.below(element);
    if (other != nullptr && other->is_member_) continue;
    rest.attach(element, other != nullptr ? child.without_trees(*other) : child);
  }
  return rest;
}

void FieldSet::for_each(const std::function<void(const FieldPath& path)>& visit) const {
  FieldPath path;
  visit_below(path, visit);
}

void FieldSet::visit_below(FieldPath& path,
                           const std::function<void(const FieldPath& path)>& visit) const {
  for (const auto& [element, child] : children_) {
    if (!child.is_member_) continue;
    path.push_back(element);
    visit(path);
    path.pop_back();
  }
  for (const auto& [element, child] : children_) {
    path.push_back(element);
    child.visit_below(path, visit);
    path.pop_back();
  }
}

}  // namespace kube::server
