#include "kube/model/json_children.hh"

#include "kube/model/json_bytes.hh"

namespace kube {

JsonChildren::JsonChildren(std::string_view text, int levels)
    : begin_(text.data()), end_(begin_ + text.size()), at_(begin_), levels_(levels) {
  is_object_ = take('{');
  is_good_ = is_object_ || take('[');
}

bool JsonChildren::next() {
  if (!is_good_) return false;
  is_good_ = false;
  if (value_ != nullptr) {
    if (at_ == value_ && !value()) return false;
    if (!take(',')) {
      is_closed_ = take(is_object_ ? '}' : ']');
      return false;
    }
  } else if (take(is_object_ ? '}' : ']')) {
    is_closed_ = true;
    return false;
  }
  if (is_object_ && !take_name()) return false;
  skip_space();
  value_ = at_;
  is_good_ = at_ != end_;
  return is_good_;
}

std::optional<std::string_view> JsonChildren::value() {
  if (at_ == value_) {
    const char* const stop = find_value_end(value_, end_, levels_);
    if (stop == nullptr || stop == value_) return std::nullopt;
    at_ = stop;
  }
  return std::string_view(value_, static_cast<std::size_t>(at_ - value_));
}

std::optional<std::size_t> JsonChildren::length() const {
  if (!is_closed_) return std::nullopt;
  return static_cast<std::size_t>(at_ - begin_);
}

void JsonChildren::skip_space() {
  while (at_ != end_ && is_json_space(*at_)) ++at_;
}

bool JsonChildren::take(char c) {
  skip_space();
  if (at_ == end_ || *at_ != c) return false;
  ++at_;
  return true;
}

bool JsonChildren::take_name() {
  if (!take('"')) return false;
  const char* const name_end = find_string_end(at_, end_);
  if (name_end == nullptr) return false;
  name_ = {at_, static_cast<std::size_t>(name_end - at_ - 1)};
  at_ = name_end;
  return take(':');
}

}  // namespace kube
