#include "kube/manager/log.hh"
#include "kube/tests/catch.hh"

using namespace kube;

TEST_CASE("a line of the log has no commands for a terminal, whatever the value is") {
  const std::pair<std::string, std::string> rows[] = {
      {"default/job", "default/job"},
      {"", R"("")"},
      {"two words", R"("two words")"},
      {"a=b", R"("a=b")"},
      {"\x1b]0;x\x07", R"("\u001b]0;x\u0007")"},
      {"\x7f", R"("\u007f")"},
      {"\xc2\x9b"
       "31m",
       R"("\u009b31m")"},
      {"\xc3\xa9", "\"\xc3\xa9\""},
      {"\xc2\xa0", "\"\xc2\xa0\""},
  };
  for (const auto& [value, expected] : rows) {
    CHECK(Log::format_line(Log::Format::kText, LogLevel::kInfo, "it", {{"of", value}}) ==
          "info it of=" + expected);
    const std::string json =
        Log::format_line(Log::Format::kJson, LogLevel::kInfo, "it", {{"of", value}});
    CHECK(json.find('\x1b') == std::string::npos);
    CHECK(json.find('\x7f') == std::string::npos);
    CHECK(json.find("\xc2\x9b") == std::string::npos);
  }
}
