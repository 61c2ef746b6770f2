// These tests check which files are trusted: every way in which another user could have put or
// changed one is refused.
#include "local/node/owned.hh"

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>

#include "kube/model/error.hh"
#include "local/tests/local_api.hh"

using namespace trainer;
namespace fs = std::filesystem;
using node::OwnedDirectory;

namespace {

constexpr uid_t kOther = 65'534;

// "" where the file `FOLDER/parent/state/secret` is read.
std::string refusal(const fs::path& state) {
  const auto folder = OwnedDirectory::open(state);
  if (!folder) return folder.error().message;
  const auto text = folder->read("secret");
  return text ? "" : text.error().message;
}

struct Tree : test::TemporaryFolder {
  const fs::path parent = path / "parent";
  const fs::path state = parent / "state";
  const fs::path secret = state / "secret";
  Tree() {
    const auto made = OwnedDirectory::make(state);
    REQUIRE(made);
    REQUIRE(made->replace("secret", "text"));
  }
};

void give_away(const fs::path& what) {
  REQUIRE(::lchown(what.c_str(), kOther, kOther) == 0);
}

mode_t mode_of(const fs::path& what) {
  struct stat status {};
  REQUIRE(::stat(what.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE_METHOD(Tree, "what it makes is its owner's alone, also with any umask") {
  const mode_t before = ::umask(0);
  const auto made = OwnedDirectory::make(path / "a" / "b");
  ::umask(before);
  REQUIRE(made);
  REQUIRE(made->open_file("c", O_RDWR | O_CREAT));
  for (const char* name : {"a", "a/b"}) CHECK(mode_of(path / name) == 0700);
  CHECK(mode_of(path / "a/b/c") == 0600);
  CHECK(made->path() == fs::canonical(path / "a/b"));
}

TEST_CASE_METHOD(Tree, "a missing folder or file is not found, and nothing is made") {
  CHECK(OwnedDirectory::open(path / "none").error().code == kube::ErrorCode::kNotFound);
  CHECK_FALSE(fs::exists(path / "none"));
  CHECK(OwnedDirectory::open(state)->read("none").error().code == kube::ErrorCode::kNotFound);
}

// Each case changes one thing of a tree that is trusted before and after.
TEST_CASE_METHOD(Tree, "what another user may have changed is refused by its path") {
  struct Case {
    const char* what;
    std::function<void(Tree& tree)> change;
    std::function<fs::path(const Tree& tree)> named;
    const char* why;
    bool is_for_root = false;
  };
  const auto is_state = [](const Tree& tree) { return tree.state; };
  const auto is_secret = [](const Tree& tree) { return tree.secret; };
  const auto is_parent = [](const Tree& tree) { return tree.parent; };
  const Case cases[] = {
      {"a file that others may write", [](Tree& t) { ::chmod(t.secret.c_str(), 0646); }, is_secret,
       "chmod go-w"},
      {"a folder that others may write", [](Tree& t) { ::chmod(t.state.c_str(), 0707); }, is_state,
       "chmod go-w"},
      {"the same with the sticky bit", [](Tree& t) { ::chmod(t.state.c_str(), 01777); }, is_state,
       "chmod go-w"},
      {"a parent that others may write", [](Tree& t) { ::chmod(t.parent.c_str(), 0757); },
       is_parent, "chmod go-w"},
      {"a link in place of the file",
       [](Tree& t) {
         fs::rename(t.secret, t.state / "real");
         fs::create_symlink("real", t.secret);
       },
       is_secret, "a link"},
      {"a pipe in place of the file",
       [](Tree& t) {
         fs::remove(t.secret);
         REQUIRE(::mkfifo(t.secret.c_str(), 0600) == 0);
       },
       is_secret, "is no file"},
      {"a file in place of the folder",
       [](Tree& t) {
         fs::remove_all(t.state);
         REQUIRE(node::write_file(t.state, ""));
       },
       is_state, "is no folder"},
      {"a file of another", [](Tree& t) { give_away(t.secret); }, is_secret, "owner 65534", true},
      {"a folder of another", [](Tree& t) { give_away(t.state); }, is_state, "owner 65534", true},
      {"a parent of another", [](Tree& t) { give_away(t.parent); }, is_parent, "owner 65534", true},
      {"a link of another to it",
       [](Tree& t) {
         fs::rename(t.parent, t.path / "elsewhere");
         fs::create_directory_symlink("elsewhere", t.parent);
         give_away(t.parent);
       },
       is_parent, "owner 65534", true},
      {"a group that has others",
       [](Tree& t) {
         REQUIRE(::chown(t.secret.c_str(), ::geteuid(), kOther) == 0);
         ::chmod(t.secret.c_str(), 0660);
       },
       is_secret, "mode 0660", true},
  };
  for (const Case& each : cases) {
    if (each.is_for_root && ::geteuid() != 0) continue;
    CAPTURE(each.what);
    Tree tree;
    REQUIRE(refusal(tree.state) == "");
    each.change(tree);
    const fs::path named =
        fs::canonical(tree.path) / each.named(tree).lexically_relative(tree.path);
    CHECK_THAT(refusal(tree.state),
               Catch::StartsWith(named.string() + " ") && kube::test::contains(each.why));
    CHECK(OwnedDirectory::make(tree.state).has_value() == (each.named(tree) == tree.secret));
  }
}

TEST_CASE_METHOD(Tree, "a folder below is held to the same rules, and is no link") {
  const auto folder = OwnedDirectory::open(state);
  REQUIRE(folder);
  const fs::path below = state / "below";
  const auto made = folder->make_folder("below");
  REQUIRE(made);
  CHECK(mode_of(below) == 0700);
  REQUIRE(made->replace("file", "text"));
  CHECK(folder->make_folder("below")->read("file").value() == "text");
  const auto is_refused = [&](const char* why) {
    const auto again = folder->make_folder("below");
    REQUIRE_FALSE(again);
    CHECK_THAT(again.error().message,
               Catch::StartsWith(folder->path() / "below") && kube::test::contains(why));
  };
  ::chmod(below.c_str(), 0707);
  is_refused("chmod go-w");
  ::chmod(below.c_str(), 0700);
  if (::geteuid() == 0) {
    give_away(below);
    is_refused("owner 65534");
  }
  fs::remove_all(below);
  fs::create_directory_symlink(".", below);
  is_refused("is no folder");
}

TEST_CASE_METHOD(Tree, "a file that has its text already is not written again") {
  const auto folder = OwnedDirectory::open(state);
  REQUIRE(folder);
  const auto number = [&] {
    struct stat status {};
    REQUIRE(::stat(secret.c_str(), &status) == 0);
    return status.st_ino;
  };
  const auto before = number();
  REQUIRE(folder->replace("secret", "text"));
  CHECK(number() == before);
  REQUIRE(folder->replace("secret", "other"));
  CHECK(number() != before);
  CHECK(folder->read("secret").value() == "other");
}

TEST_CASE_METHOD(Tree, "what no other user can change is trusted") {
  const auto is_trusted = [this](const char* what) {
    INFO(what);
    CHECK(refusal(state) == "");
  };
  ::chmod(parent.c_str(), 01777);
  is_trusted("below a sticky folder");
  ::chmod(parent.c_str(), 0755);
  ::chmod(secret.c_str(), 0444);
  is_trusted("readable by all");
  fs::rename(parent, path / "elsewhere");
  fs::create_directory_symlink(fs::path("..") / path.filename() / "elsewhere", parent);
  is_trusted("over a link of one's own");
  CHECK(OwnedDirectory::open(state)->path() == fs::canonical(path) / "elsewhere" / "state");
  fs::remove(parent);
  fs::create_directory_symlink(parent, parent);
  CHECK_THAT(refusal(state), Catch::Contains("link that can be followed"));
}

TEST_CASE_METHOD(Tree, "a file for lines, at any place") {
  CHECK(node::open_owned(path / "lines", O_WRONLY | O_CREAT));
  fs::create_symlink("lines", path / "link");
  CHECK_THAT(node::open_owned(path / "link", O_WRONLY | O_CREAT).error().message,
             Catch::Contains("a link") && Catch::EndsWith("or name another file"));
  ::chmod(parent.c_str(), 0777);
  CHECK_THAT(node::open_owned(parent / "lines", O_WRONLY | O_CREAT).error().message,
             Catch::EndsWith("or name another file"));
  ::chmod(parent.c_str(), 01777);
  CHECK(node::open_owned(parent / "lines", O_WRONLY | O_CREAT));
}
