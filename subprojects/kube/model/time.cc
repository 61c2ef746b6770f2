#include "kube/model/time.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kube {
namespace {

using std::chrono::floor;

// Takes a text of this form off the front and returns its N numbers; "0" means any digit.
template <std::size_t N>
std::optional<std::array<int, N>> take(std::string_view& text, std::string_view form) {
  if (text.size() < form.size()) return std::nullopt;
  std::array<int, N> numbers{};
  auto number = numbers.begin();
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == '0' ? !is_digit : text[i] != form[i]) return std::nullopt;
    if (is_digit) {
      *number = *number * 10 + (text[i] - '0');
    } else {
      ++number;
    }
  }
  text.remove_prefix(form.size());
  return numbers;
}

bool skip(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Takes a fraction of a second: "" or ".5". Digits after the sixth are dropped.
std::optional<std::chrono::microseconds> take_fraction(std::string_view& text) {
  std::chrono::microseconds fraction{0};
  if (!skip(text, '.')) return fraction;
  auto digit = take<1>(text, "0");
  if (!digit) return std::nullopt;
  for (int unit = 100'000; digit; unit /= 10, digit = take<1>(text, "0"))
    fraction += std::chrono::microseconds((*digit)[0] * unit);
  return fraction;
}

// Takes "Z" or "+hh:mm" or "-hh:mm".
std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  if (skip(text, 'Z')) return std::chrono::minutes(0);
  const bool is_west = skip(text, '-');
  if (!is_west && !skip(text, '+')) return std::nullopt;
  const auto offset = take<2>(text, "00:00");
  if (!offset || (*offset)[0] > 23 || (*offset)[1] > 59) return std::nullopt;
  return std::chrono::minutes((is_west ? -1 : 1) * ((*offset)[0] * 60 + (*offset)[1]));
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

std::optional<Time> Time::parse(std::string_view text) {
  namespace chrono = std::chrono;
  const auto numbers = take<6>(text, "0000-00-00T00:00:00");
  if (!numbers) return std::nullopt;
  const auto& [year, month, day, hour, minute, second] = *numbers;
  const chrono::year_month_day date(chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto offset = fraction ? take_offset(text) : std::nullopt;
  if (!offset || !text.empty()) return std::nullopt;
  return Time(Point(chrono::sys_days(date) + chrono::hours(hour) + chrono::minutes(minute) +
                    chrono::seconds(second) + *fraction - *offset));
}

Time Time::after(std::int64_t seconds) const {
  constexpr std::int64_t kCentury = 100LL * 365 * 24 * 3600;
  return *this + std::chrono::seconds(std::clamp(seconds, -kCentury, kCentury));
}

std::string Time::to_string() const {
  return print_seconds(point_) + "Z";
}

std::string Time::to_micro_string() const {
  const auto fraction = point_ - floor<std::chrono::seconds>(point_);
  return fmt::format("{}.{:06}Z", print_seconds(point_), fraction.count());
}

}  // namespace kube
