// A described struct is made to fit the bounds of its schema.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/describe/attributes.hh"
#include "kube/model/meta.hh"
#include "kube/model/visible_text.hh"

namespace trainer::wire {

// There is one sentence for each value that was cut.
using Cuts = std::vector<std::string>;

// Cuts a text or a list to `most` bytes or items, but never within a character. Texts become
// visible: a status may repeat texts of other users.
template <class Value>
void cut(std::string_view name, Value& value, std::size_t most, Cuts& cuts) {
  if constexpr (std::is_same_v<Value, std::string>)
    if (!kube::is_plain_line(value)) value = kube::visible_text(std::move(value));
  if (value.size() <= most) return;
  cuts.push_back(
      fmt::format("{} has a length of {}, and {} is the most that the API takes: the rest "
                  "is left out",
                  name, value.size(), most));
  if constexpr (std::is_same_v<Value, std::string>) {
    while (most > 0 && (static_cast<unsigned char>(value[most]) & 0xc0U) == 0x80U) --most;
  }
  value.resize(most);
}

// These values have no bounds of their own.
template <class T>
void fit(T&, Cuts&) {}
inline void fit(kube::Condition& condition, Cuts& cuts) {
  constexpr std::size_t kMaxBytes = 32'768;  // the bound of metav1.Condition
  cut("message", condition.message, kMaxBytes, cuts);
}
template <class T>
  requires requires { sizeof(T::unknown); }
void fit(T& value, Cuts& cuts);
template <class T>
void fit(std::optional<T>& value, Cuts& cuts) {
  if (value) fit(*value, cuts);
}
template <class T>
void fit(std::vector<T>& value, Cuts& cuts) {
  for (T& item : value) fit(item, cuts);
}

// Lengths of texts are counted in bytes here, while the API counts characters, so a text is never
// too long for the API.
template <class Member>
class FitAttributes : public UnreadAttributes<FitAttributes<Member>> {
 public:
  using Self = const FitAttributes&;
  FitAttributes(std::string_view name, Member& value, Cuts& cuts)
      : name_(name), value_(value), cuts_(cuts) {}

  Self minimum(std::int64_t least) const {
    return bound([least](auto& number) {
      number = std::max(number, static_cast<std::remove_reference_t<decltype(number)>>(least));
    });
  }
  Self maximum(std::int64_t most) const {
    return bound([most](auto& number) {
      number = std::min(number, static_cast<std::remove_reference_t<decltype(number)>>(most));
    });
  }
  Self max_length(std::int64_t most) const {
    if constexpr (std::is_same_v<Member, std::string>)
      cut(name_, value_, static_cast<std::size_t>(most), cuts_);
    return *this;
  }
  Self max_items(std::int64_t most) const {
    if constexpr (requires { value_.emplace_back(); })
      cut(name_, value_, static_cast<std::size_t>(most), cuts_);
    return *this;
  }

 private:
  template <class Change>
  Self bound(const Change& change) const {
    if constexpr (std::is_arithmetic_v<Member>) {
      change(value_);
    } else if constexpr (requires { *value_ + 1; }) {
      if (value_) change(*value_);
    }
    return *this;
  }

  std::string_view name_;
  Member& value_;
  Cuts& cuts_;
};

// This is the visitor.
template <class T>
class Fitter {
 public:
  Fitter(T& value, Cuts& cuts) : value_(value), cuts_(cuts) {}

  template <class Member>
  FitAttributes<Member> field(std::string_view name, Member T::*member) {
    fit(value_.*member, cuts_);
    return {name, value_.*member, cuts_};
  }
  template <class Member>
  FitAttributes<Member> required(std::string_view name, Member T::*member) {
    return field(name, member);
  }
  template <class Member>
  FitAttributes<Member> always(std::string_view name, Member T::*member) {
    return field(name, member);
  }
  template <class Member>
  NoAttributes derived(std::string_view, Member (T::*)() const) {
    return {};
  }
  void removed(std::string_view, Removed, std::string_view) {}
  NoAttributes self() { return {}; }

 private:
  T& value_;
  Cuts& cuts_;
};

template <class T>
  requires requires { sizeof(T::unknown); }
void fit(T& value, Cuts& cuts) {
  Fitter<T> fitter(value, cuts);
  T::describe(fitter);
}

}  // namespace trainer::wire
