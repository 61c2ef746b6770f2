#include "controller/ssh/key_pair.hh"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "kube/model/digest.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  pclose(pipe);
  return output;
}

}  // namespace

TEST_CASE("a key pair has the wire form that sshd reads") {
  const auto pair = make_ssh_key_pair();
  REQUIRE(pair);
  const std::string& pem = pair->private_key.reveal();
  CHECK(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
  CHECK(pem.ends_with("-----END EC PRIVATE KEY-----\n"));

  const std::string prefix = "ecdsa-sha2-nistp521 ";
  REQUIRE_THAT(pair->public_key, kube::test::starts_with(prefix));
  REQUIRE(pair->public_key.ends_with("\n"));
  const auto blob = kube::base64_decode(
      pair->public_key.substr(prefix.size(), pair->public_key.size() - prefix.size() - 1));
  REQUIRE(blob);
  // Three strings with lengths: 4+19, 4+8, 4+133; the point is uncompressed.
  CHECK(blob->size() == 172);
  CHECK(blob->substr(4, 19) == "ecdsa-sha2-nistp521");
  CHECK(blob->substr(27, 8) == "nistp521");
  CHECK((*blob)[39] == '\x04');
}

TEST_CASE("no two key pairs are alike") {
  CHECK(make_ssh_key_pair()->public_key != make_ssh_key_pair()->public_key);
}

TEST_CASE("ssh-keygen derives the public key from the private one") {
  INFO("ssh-keygen is of Debian's package openssh-client, which ./check installs");
  REQUIRE(std::system("command -v ssh-keygen >/dev/null 2>&1") == 0);
  const auto pair = make_ssh_key_pair();
  REQUIRE(pair);
  std::string folder = (std::filesystem::temp_directory_path() / "trainer-ssh-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/id_ecdsa";
  std::ofstream(file) << pair->private_key.reveal();
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  CHECK(output_of("ssh-keygen -y -f " + file) == pair->public_key);
  std::filesystem::remove_all(folder);
}
