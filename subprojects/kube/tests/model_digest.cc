#include <random>

#include "kube/model/digest.hh"
#include "kube/tests/catch.hh"

// FIPS 180 examples.
TEST_CASE("digests") {
  CHECK(kube::sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(kube::sha1_hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(kube::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(kube::sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(kube::sha256_raw("abc").substr(0, 3) == "\xba\x78\x16");
  CHECK(kube::sha256_raw("abc").size() == 32);
}

// RFC 4648, section 10.
TEST_CASE("base64") {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xff\xfe\xfd", "//79"},
      {"\xfb\xf0", "+/A="},
  };
  for (const auto& [data, text] : cases) {
    INFO(text);
    CHECK(kube::base64_encode(data) == text);
    CHECK(kube::base64_decode(text) == data);
  }
  CHECK(kube::base64_decode("Zm9v\r\nYmFy\n") == "foobar");
  for (const auto text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg==Zg==", "Zm9v ",
                          "Zm-_", "Zm=v", "Zm9\xff"}) {
    INFO(text);
    CHECK_FALSE(kube::base64_decode(text));
  }
}

TEST_CASE("base64 keeps every byte") {
  std::mt19937 random(51);
  for (int i = 0; i < 500; ++i) {
    std::string data(random() % 100, '\0');
    for (char& c : data) c = static_cast<char>(random());
    REQUIRE(kube::base64_decode(kube::base64_encode(data)) == data);
  }
}
