#include <random>

#include "kube/model/gzip.hh"
#include "kube/tests/catch.hh"

using namespace kube;

namespace {

std::string noise(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace

TEST_CASE("parts of a text are compressed into one, and read back") {
  GzipWriter writer(100'000);
  CHECK(writer.add("[1"));
  CHECK(writer.add(std::string(500'000 / 10, ' ')));
  CHECK(writer.add(""));
  const std::string bytes = writer.finish("]");
  CHECK(bytes.size() < 1'000);
  CHECK(bytes.starts_with("\x1f\x8b"));
  CHECK(gunzip(bytes, 100'000) == "[1" + std::string(50'000, ' ') + "]");
  CHECK(gunzip(GzipWriter(1'024).finish(""), 10) == "");
}

TEST_CASE("a result never becomes longer than its limit") {
  for (const std::size_t limit : {1'024U, 5'000U, 262'144U}) {
    GzipWriter writer(limit);
    std::string text;
    int left_out = 0;
    for (std::uint32_t i = 0; i < 600; ++i) {
      const std::string part = noise(1 + i * 7 % 3'000, i);
      if (writer.add(part))
        text += part;
      else
        ++left_out;
    }
    const std::string end = noise(GzipWriter::kMaxEnd, 1);
    const std::string bytes = writer.finish(end);
    CHECK(left_out > 0);
    CHECK(bytes.size() <= limit);
    CHECK(bytes.size() + 700 > limit);
    CHECK(gunzip(bytes, 1'000'000) == text + end);
  }
}

TEST_CASE("bytes that are no gzip, are cut, or hide a long text are refused") {
  GzipWriter writer(10'000);
  REQUIRE(writer.add(std::string(5'000, 'a')));
  const std::string bytes = writer.finish("");
  CHECK(gunzip(bytes, 5'000).has_value());
  CHECK(gunzip(bytes, 4'999).error().code == ErrorCode::kInvalid);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(gunzip(std::string_view(bytes).substr(0, size), 5'000));
  CHECK_FALSE(gunzip("no such text", 5'000));
  std::string other = bytes;
  other[bytes.size() - 6] ^= 1;  // the checksum
  CHECK_FALSE(gunzip(other, 5'000));
}
