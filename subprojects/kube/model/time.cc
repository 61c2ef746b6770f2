#include "kube/model/time.hh"

#include <fmt/format.h>

namespace kube {
namespace {

using std::chrono::floor;

// Reads a text from left to right; each step answers nothing, and changes nothing, where the text
// does not fit.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<int> digits(std::size_t count) {
    if (text_.size() < count) return std::nullopt;
    int value = 0;
    for (const char c : text_.substr(0, count)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(count);
    return value;
  }
  bool skip(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

std::optional<std::chrono::sys_days> scan_date(Scanner& scanner) {
  const auto year = scanner.digits(4);
  if (!year || !scanner.skip('-')) return std::nullopt;
  const auto month = scanner.digits(2);
  if (!month || !scanner.skip('-')) return std::nullopt;
  const auto day = scanner.digits(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

// "hh:mm", for the time of day and for the offset.
std::optional<std::chrono::minutes> scan_minutes(Scanner& scanner) {
  const auto hour = scanner.digits(2);
  if (!hour || *hour > 23 || !scanner.skip(':')) return std::nullopt;
  const auto minute = scanner.digits(2);
  if (!minute || *minute > 59) return std::nullopt;
  return std::chrono::minutes(*hour * 60 + *minute);
}

// ":ss" with an optional fraction, of which digits after the sixth are dropped.
std::optional<std::chrono::microseconds> scan_seconds(Scanner& scanner) {
  if (!scanner.skip(':')) return std::nullopt;
  const auto second = scanner.digits(2);
  if (!second || *second > 59) return std::nullopt;
  std::chrono::microseconds result = std::chrono::seconds(*second);
  if (!scanner.skip('.')) return result;
  auto digit = scanner.digits(1);
  if (!digit) return std::nullopt;
  for (int unit = 100'000; digit; unit /= 10, digit = scanner.digits(1))
    result += std::chrono::microseconds(*digit * unit);
  return result;
}

// "Z" or "+hh:mm" or "-hh:mm".
std::optional<std::chrono::minutes> scan_offset(Scanner& scanner) {
  if (scanner.skip('Z')) return std::chrono::minutes(0);
  const bool west = scanner.skip('-');
  if (!west && !scanner.skip('+')) return std::nullopt;
  const auto offset = scan_minutes(scanner);
  if (!offset) return std::nullopt;
  return west ? -*offset : *offset;
}

std::string print_seconds(Time::Point point) {
  const auto seconds = floor<std::chrono::seconds>(point);
  const auto day = floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace

Time Time::from_seconds(std::int64_t seconds) {
  return Time(Point(std::chrono::seconds(seconds)));
}

std::optional<Time> Time::parse(std::string_view text) {
  Scanner scanner(text);
  const auto date = scan_date(scanner);
  if (!date || !scanner.skip('T')) return std::nullopt;
  const auto minutes = scan_minutes(scanner);
  if (!minutes) return std::nullopt;
  const auto seconds = scan_seconds(scanner);
  if (!seconds) return std::nullopt;
  const auto offset = scan_offset(scanner);
  if (!offset || !scanner.at_end()) return std::nullopt;
  return Time(Point(*date + *minutes + *seconds - *offset));
}

std::string Time::to_string() const {
  return print_seconds(point_) + "Z";
}

std::string Time::to_micro_string() const {
  const auto fraction = point_ - floor<std::chrono::seconds>(point_);
  return fmt::format("{}.{:06}Z", print_seconds(point_), fraction.count());
}

std::int64_t Time::seconds() const {
  return floor<std::chrono::seconds>(point_).time_since_epoch().count();
}

Time Time::whole_seconds() const {
  return from_seconds(seconds());
}

}  // namespace kube
