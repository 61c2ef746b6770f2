#include "controller/cli/code_pack.hh"

#include "kube/model/digest.hh"
#include "kube/model/gzip.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using Kind = CodeEntry::Kind;

namespace {

// Random bytes, which nothing compresses.
std::string noise(std::size_t size) {
  std::string text;
  std::uint32_t state = 7;
  while (text.size() < size) {
    state = state * 1664525U + 1013904223U;
    text += static_cast<char>(state >> 24U);
  }
  return text;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

}  // namespace

TEST_CASE("equal files make equal bytes, in any order") {
  const CodeEntry script{Kind::kFile, "train.py", false, "print(1)\n"};
  const CodeEntry folder{Kind::kDirectory, "src", false, ""};
  const CodeEntry module{Kind::kFile, "src/model.py", true, ""};
  const std::string tar = make_tar({script, module, folder});
  CHECK(tar == make_tar({folder, script, module}));
  CHECK(tar.size() == 6 * 512);
  CHECK(tar.substr(0, 5) == std::string("src/\0", 5));
  CHECK(tar.substr(100, 7) == "0000755");
  CHECK(tar.substr(136, 11) == "00000000000");
  CHECK(tar[156] == '5');
  CHECK(tar.substr(512, 13) == std::string("src/model.py\0", 13));
  CHECK(tar.substr(512 + 100, 7) == "0000755");
  CHECK(tar.substr(1024 + 100, 7) == "0000644");
  CHECK(tar.substr(1536, 9) == "print(1)\n");
  const auto packed = pack_code({script, module, folder}, ".");
  REQUIRE(packed);
  REQUIRE(packed->size() == 1);
  CHECK(kube::gunzip((*packed)[0], 1U << 20) == tar);
}

TEST_CASE("long names and links have entries of their own") {
  const std::string name(150, 'n');
  const std::string tar = make_tar({{Kind::kLink, name, false, "../" + name}});
  CHECK(tar.size() == 7 * 512);
  CHECK(tar[156] == 'K');
  CHECK(tar.substr(512, 153) == "../" + name);
  CHECK(tar[1024 + 156] == 'L');
  CHECK(tar.substr(1536, 150) == name);
  CHECK(tar[2048 + 156] == '2');
}

TEST_CASE("large code is in parts, and the parts are in ConfigMaps that kubectl applies") {
  const std::string text = noise(500'000);
  const auto parts = pack_code({{Kind::kFile, "data.bin", false, text}}, ".");
  REQUIRE(parts);
  CHECK(parts->size() == 3);
  const auto unpacked = kube::gunzip(joined(*parts), 1U << 20);
  REQUIRE(unpacked);
  CHECK(unpacked->substr(512, text.size()) == text);
  const auto objects = code_config_maps({"team", "j"}, *parts);
  REQUIRE(objects.size() == 3);
  CHECK(code_names("j", 2) == std::vector<std::string>{"j-code-0", "j-code-1"});
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const kube::Json& object = objects[i];
    CHECK(object.get("metadata").get_string("namespace") == "team");
    CHECK(object.get("metadata").get_string("name") == "j-code-" + std::to_string(i));
    CHECK(object.get_bool("immutable"));
    // kubectl's annotation and all others may have 256 KiB.
    CHECK(kube::print_json(object).size() < 261'000);
    const auto key = "code.tar.gz.0" + std::to_string(i);
    CHECK(kube::base64_decode(object.get("binaryData").get_string(key)) == (*parts)[i]);
  }
  CHECK(code_config_maps({"", "j"}, *parts)[0].get("metadata").find("namespace") == nullptr);
}

TEST_CASE("code that is too large lists its largest files and the ways out") {
  std::vector<CodeEntry> entries{{Kind::kFile, "large.bin", false, noise(4'000'000)},
                                 {Kind::kDirectory, "d", false, ""}};
  for (int i = 0; i < 20; ++i)
    entries.push_back({Kind::kFile, "d/" + std::to_string(i), false, std::string(100, 'x')});
  const auto parts = pack_code(std::move(entries), "here");
  REQUIRE_FALSE(parts);
  CHECK(parts.error().code == kube::ErrorCode::kTooLarge);
  const std::string& message = parts.error().message;
  CHECK(message.starts_with("--code here: its files have 3.8 MiB compressed, and 3.0 MiB "));
  for (const char* way : {"claim", "git", "image", ".trainerignore", "   3.8 MiB  large.bin\n",
                          "100 bytes  d/0\n", "11 more files"})
    CHECK_THAT(message, kube::test::contains(way));
}
