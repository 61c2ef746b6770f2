#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kube/model/compressed_text.hh"
#include "kube/tests/catch.hh"

namespace {

using kube::CompressedText;
using kube::TextCompressor;

// Printable noise, which deflate can do little with.
std::string noise(std::mt19937& engine, std::size_t size) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>(' ' + engine() % 95);
  return text;
}

// Two objects of one kind have a part in common, and a part of their own.
std::string object(const std::string& common, int number) {
  return "{\"metadata\":{\"name\":\"j" + std::to_string(number) + "\",\"uid\":\"" +
         std::to_string(number * 7'919) + "\"},\"spec\":" + common + "}";
}

}  // namespace

TEST_CASE("a packed text is the text") {
  std::mt19937 engine(1);
  for (int round = 0; round < 300; ++round) {
    // Bytes of any value, with repetitions, on both sides of deflate's window.
    std::string text = noise(engine, engine() % (round % 10 == 0 ? 50'000 : 700));
    if (!text.empty()) text[engine() % text.size()] = '\0';
    text += text.substr(0, engine() % (text.size() + 1));
    auto dictionary = std::make_shared<const std::string>(
        engine() % 3 == 0 ? text.substr(text.size() / 2) : noise(engine, engine() % 40'000));
    if (engine() % 4 == 0) dictionary = nullptr;
    const CompressedText compressed = CompressedText::deflated(text, dictionary);
    dictionary = nullptr;  // it lives on in the packed text
    CHECK(compressed.size() == text.size());
    CHECK(compressed.stored_size() <= text.size());
    CHECK(compressed.text() == text);
  }
}

TEST_CASE("a text that does not shrink is kept as it is") {
  std::mt19937 engine(2);
  for (const std::string& text : {std::string(), std::string("x"), noise(engine, 40)}) {
    const CompressedText compressed = CompressedText::deflated(text, nullptr);
    CHECK(compressed.stored_size() == text.size());
    CHECK(compressed.text() == text);
  }
  CHECK(CompressedText("as it is").text() == "as it is");
  CHECK(CompressedText().text().empty());
}

TEST_CASE("texts of one kind are packed against one another") {
  std::mt19937 engine(3);
  TextCompressor compressor;
  const std::string common = noise(engine, 2'000);
  compressor.compress(object(common, 0));
  for (int number = 1; number < 200; ++number) {
    const std::string text = object(common, number);
    const CompressedText compressed = compressor.compress(text);
    CHECK(compressed.stored_size() < 100);
    CHECK(compressed.text() == text);
  }
}

TEST_CASE("a packer follows what it is given, but not every text") {
  std::mt19937 engine(4);
  TextCompressor compressor;
  const std::string before = noise(engine, 2'000);
  const std::string after = noise(engine, 2'000);
  for (int number = 0; number < 100; ++number) compressor.compress(object(before, number));
  CHECK(compressor.compress(object(after, 0)).stored_size() > 1'000);
  CHECK(compressor.compress(object(after, 1)).stored_size() < 100);
  // The first one of another kind in between does not become the dictionary.
  CHECK(compressor.compress(object(before, 2)).stored_size() > 1'000);
  CHECK(compressor.compress(object(after, 3)).stored_size() < 100);
}

TEST_CASE("a long text is packed where that halves it, whatever its size") {
  std::mt19937 engine(5);
  TextCompressor compressor;
  const std::size_t size = TextCompressor::kLong;
  const std::string some = noise(engine, 20'000);
  struct Case {
    std::string text;
    bool is_packed;
  };
  std::string resembling;
  while (resembling.size() < 1'400'000) resembling += some;
  const Case cases[] = {
      {std::string(size + 1, 'x'), true},
      {std::string(1'400'000, 'x'), true},
      {resembling, true},
      {noise(engine, size + 1), false},
      {noise(engine, 1'400'000), false},
      {std::string(size, 'x') + noise(engine, 20 * size), false},
      {noise(engine, 3 * size) + std::string(20 * size, 'x'), false},  // its beginning does not
  };
  for (const Case& c : cases) {
    const CompressedText compressed = compressor.compress(c.text);
    CHECK(compressed.size() == c.text.size());
    CHECK((compressed.stored_size() <= c.text.size() / 2) == c.is_packed);
    CHECK(compressed.text() == c.text);
  }
}
