#include "controller/cli/log_lines.hh"

#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kSecond = "2026-08-20T10:00:00";

// The texts of the lines that are printed when the server sends these.
std::vector<std::string> printed(LogCursor& cursor, const std::vector<std::string>& lines) {
  std::vector<std::string> texts;
  cursor.begin_stream();
  for (const std::string& text : lines) {
    const LogLine line = read_log_line(text);
    if (cursor.is_new(line)) texts.push_back(line.text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a line is a time and a text, or a text alone") {
  const LogLine line = read_log_line(kSecond + ".000000001Z hello  world ");
  CHECK(line.timestamp == kSecond + ".000000001Z");
  CHECK(line.text == "hello  world ");
  CHECK(line.instant()->second == 1);
  CHECK(read_log_line(kSecond + "Z").text.empty());
  CHECK(read_log_line(kSecond + ".5+02:00 x").instant()->second == 500'000'000);
  CHECK(read_log_line(kSecond + ".5+02:00 x").instant()->first ==
        read_log_line(kSecond + ".5Z x").instant()->first - 7'200);
  for (const char* text : {"", "hello", "2026 was a year", "unable to retrieve container logs"}) {
    CHECK(read_log_line(text).text == text);
    CHECK_FALSE(read_log_line(text).instant());
  }
}

TEST_CASE("pieces are split into lines, wherever the pieces end") {
  LineSplitter splitter;
  Texts lines;
  for (const char* piece : {"a", "b\nc", "d\n\n", "e"}) {
    splitter.add(piece);
    while (const auto line = splitter.next(false)) lines.push_back(*line);
  }
  CHECK(lines == Texts{"ab", "cd", ""});
  CHECK(splitter.next(true) == "e");
  CHECK_FALSE(splitter.next(true));
  // A line without end does not grow for ever.
  splitter.add(std::string(2U << 20, 'x'));
  CHECK_FALSE(splitter.is_within_line());
  CHECK(splitter.next(false)->size() == 2U << 20);
  CHECK(splitter.is_within_line());
  CHECK_FALSE(splitter.next(false));
  splitter.add("x\nnext\n");
  CHECK(splitter.next(false) == "x");
  CHECK_FALSE(splitter.is_within_line());
}

TEST_CASE("every line of a stream that is opened again is printed once") {
  LogCursor cursor;
  CHECK_FALSE(cursor.since_time());
  CHECK(printed(cursor, {kSecond + ".1Z a", kSecond + ".2Z b", kSecond + ".2Z c"}) ==
        Texts{"a", "b", "c"});
  CHECK(cursor.since_time() == kSecond + "Z");
  // The server starts at the whole second; one more line of the same instant has come.
  CHECK(printed(cursor, {kSecond + ".1Z a", kSecond + ".2Z b", kSecond + ".2Z c", kSecond + ".2Z d",
                         kSecond + ".25Z e"}) == Texts{"d", "e"});
  CHECK(printed(cursor, {kSecond + ".25Z e"}).empty());
  CHECK(printed(cursor, {}).empty());
  CHECK(printed(cursor, {kSecond + ".25Z e", "2026-08-20T10:00:01Z f"}) == Texts{"f"});
}

TEST_CASE("times with fewer digits compare as numbers") {
  LogCursor cursor;
  CHECK(printed(cursor, {kSecond + ".12Z a"}) == Texts{"a"});
  CHECK(printed(cursor, {kSecond + ".1Z before", kSecond + ".12Z a", kSecond + ".120000001Z b"}) ==
        Texts{"b"});
}

TEST_CASE("within one stream every line is printed, also one with an older time") {
  LogCursor cursor;
  CHECK(printed(cursor, {kSecond + ".5Z a", kSecond + ".4Z b", kSecond + ".5Z c"}) ==
        Texts{"a", "b", "c"});
  CHECK(printed(cursor, {kSecond + ".5Z a", kSecond + ".4Z b", kSecond + ".5Z c",
                         kSecond + ".6Z d"}) == Texts{"d"});
}

TEST_CASE("a line without a time is printed") {
  LogCursor cursor;
  CHECK(printed(cursor, {kSecond + ".1Z a", "no time"}) == Texts{"a", "no time"});
}

TEST_CASE("the parts of a long line are printed or left out together") {
  LogCursor cursor;
  const LogLine begin = read_log_line(kSecond + ".1Z begin");
  const LogLine part{"", "a part that begins as no line does", true};
  const LogLine next = read_log_line(kSecond + ".2Z next");
  for (const bool is_first : {true, false}) {
    cursor.begin_stream();
    CHECK(cursor.is_new(begin) == is_first);
    CHECK(cursor.is_new(part) == is_first);
  }
  CHECK(cursor.is_new(next));
  CHECK(cursor.is_new(part));
}
