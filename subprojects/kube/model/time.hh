// Instants have the form of the Kubernetes API (RFC 3339).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kube {

// This is an instant with microseconds, in UTC. Value type.
class Time {
 public:
  using Clock = std::chrono::system_clock;
  using Point = std::chrono::time_point<Clock, std::chrono::microseconds>;

  Time() = default;  // 1970-01-01T00:00:00Z
  explicit Time(Point point) : point_(point) {}
  static Time from_seconds(std::int64_t seconds) {
    return Time(Point(std::chrono::seconds(seconds)));
  }

  // Parses RFC 3339 with any fraction and offset: "2026-08-20T10:00:00Z",
  // "2026-08-20T12:00:00.123456+02:00".
  static std::optional<Time> parse(std::string_view text);
  // Returns the form of metav1.Time: whole seconds, "2026-08-20T10:00:00Z".
  std::string to_string() const;
  // Returns the form of metav1.MicroTime: "2026-08-20T10:00:00.123456Z".
  std::string to_micro_string() const;

  Point point() const { return point_; }
  std::int64_t seconds() const {
    return std::chrono::floor<std::chrono::seconds>(point_).time_since_epoch().count();
  }
  // Returns the same instant without its fraction: the API keeps only that.
  Time whole_seconds() const { return from_seconds(seconds()); }
  // Returns the instant so many seconds later, or earlier. Users may write any number: more than a
  // century counts as a century, which this type and the timers can hold.
  Time after(std::int64_t seconds) const;

  friend auto operator<=>(const Time&, const Time&) = default;
  friend Time operator+(Time t, std::chrono::microseconds d) { return Time(t.point_ + d); }
  friend std::chrono::microseconds operator-(Time a, Time b) { return a.point_ - b.point_; }

 private:
  Point point_{};
};

}  // namespace kube
