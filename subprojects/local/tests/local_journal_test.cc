// The journal: what was committed survives the process, and a failed write changes nothing.
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "local/server/journal.hh"
#include "local/server/state_directory.hh"
#include "local/tests/local_api.hh"

using namespace trainer;
using kube::Json;
using kube::server::ObjectStore;

namespace {

Json object_of(int number, std::size_t size = 10) {
  Json object = test::config_map("object-" + std::to_string(number), std::string(size, 'x'));
  object["metadata"].set("uid", "uid-" + std::to_string(number));
  return object;
}

// A store that writes into a journal of this file.
struct Journaled {
  node::OwnedDirectory folder;
  std::unique_ptr<Journal> journal;
  ObjectStore store;
  std::vector<std::string> unreadable;
  explicit Journaled(const std::filesystem::path& file)
      : folder(folder_of(file)), journal(open(folder)), store(journal->version()) {
    std::vector<kube::Resource> resources;
    for (const auto& kind : test::few_kinds()) resources.push_back(kind.resource);
    for (const auto& resource : resources) store.add_collection(resource);
    auto restored = journal->restore(store, resources);
    if (!restored) throw std::runtime_error(restored.error().message);
    unreadable = std::move(*restored);
    store.set_journal([this](const kube::server::Change& change) { journal->write(change); });
  }
  static node::OwnedDirectory folder_of(const std::filesystem::path& file) {
    auto opened = node::OwnedDirectory::open(file.parent_path());
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  static std::unique_ptr<Journal> open(const node::OwnedDirectory& folder) {
    auto opened = Journal::open(folder);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
};

// Writes until it is killed, and says after each write how many there are.
[[noreturn]] void write_for_ever(const std::filesystem::path& file, int out) {
  try {
    Journaled child(file);
    for (int i = 0;; ++i) {
      child.store.put(kube::kConfigMaps, object_of(i, 1'000));
      if (i > 0 && i % 3 == 0) child.store.erase(kube::kConfigMaps, {"default", "object-1"});
      if (::write(out, &i, sizeof i) != sizeof i) break;
    }
  } catch (const std::exception&) {
  }
  ::_exit(1);
}

}  // namespace

TEST_CASE("only its user can read what is stored, in any directory") {
  const auto directory = std::filesystem::temp_directory_path() /
                         ("trainer-journal-mode-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  std::filesystem::permissions(directory, std::filesystem::perms(0755));
  for (const bool is_new : {true, false}) {
    const auto file = directory / "state.db";
    if (!is_new) std::filesystem::permissions(file, std::filesystem::perms(0644));
    Journaled world(file);
    world.store.put(kube::kConfigMaps, object_of(is_new ? 1 : 2));
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      INFO(entry.path());
      CHECK(entry.status().permissions() == std::filesystem::perms(0600));
    }
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("what was answered is there after a kill at any moment") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  for (const int writes : {1, 7, 40}) {
    CAPTURE(writes);
    std::filesystem::remove(file);
    std::filesystem::remove(file.string() + "-wal");
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const pid_t child = ::fork();
    if (child == 0) write_for_ever(file, pipe[1]);
    ::close(pipe[1]);
    int last = -1;
    while (last + 1 < writes && ::read(pipe[0], &last, sizeof last) == sizeof last) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // These are the values that it wrote until the signal came.
    while (::read(pipe[0], &last, sizeof last) == sizeof last) {
    }
    ::close(pipe[0]);
    REQUIRE(last + 1 >= writes);
    const Journaled after(file);
    for (int i = 0; i <= last; ++i) {
      CAPTURE(i);
      const auto found =
          after.store.find(kube::kConfigMaps, {"default", "object-" + std::to_string(i)});
      // The third write was not answered if the signal came before its end.
      if (i != 1) CHECK(found);
      if (i == 1 && last >= 3) CHECK_FALSE(found);
    }
    CHECK(after.store.version() > last);
  }
}

TEST_CASE(
    "versions go on after a restart, and watches from before it are answered that they expired") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  std::int64_t before = 0;
  std::string version;
  {
    Journaled first(file);
    first.store.put(kube::kConfigMaps, object_of(1));
    version = (*first.store.put(kube::kConfigMaps, object_of(2)))
                  ->get("metadata")
                  .get_string("resourceVersion");
    first.store.erase(kube::kConfigMaps, {"default", "object-1"});
    before = first.store.version();
  }
  Journaled second(file);
  CHECK(second.store.version() == before);
  CHECK(second.store.all(kube::kConfigMaps).size() == 1);
  const auto kept = second.store.find(kube::kConfigMaps, {"default", "object-2"});
  REQUIRE(kept);
  CHECK(kept->get("metadata").get_string("resourceVersion") == version);
  CHECK_FALSE(second.store.changes_since(kube::kConfigMaps, before - 1));
  CHECK(second.store.changes_since(kube::kConfigMaps, before));
  second.store.put(kube::kConfigMaps, object_of(3));
  CHECK(second.store.version() == before + 1);
}

TEST_CASE("a write without room changes nothing, and a later one succeeds") {
  const test::TemporaryFolder folder;
  Journaled journaled(folder.path / "state.db");
  journaled.store.put(kube::kConfigMaps, object_of(0));
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  rlimit small = usual;
  small.rlim_cur = 200'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  int stored = 1;
  std::string why;
  try {
    for (; stored < 1'000; ++stored)
      journaled.store.put(kube::kConfigMaps, object_of(stored, 10'000));
  } catch (const StorageError& error) {
    why = error.what();
  }
  const auto version = journaled.store.version();
  ::setrlimit(RLIMIT_FSIZE, &usual);
  ::signal(SIGXFSZ, ignored);
  CHECK_THAT(why, Catch::Contains("state.db") && Catch::Contains("reads and deletes go on"));
  CHECK(journaled.store.all(kube::kConfigMaps).size() == static_cast<std::size_t>(stored));
  CHECK_FALSE(
      journaled.store.find(kube::kConfigMaps, {"default", "object-" + std::to_string(stored)}));
  journaled.store.put(kube::kConfigMaps, object_of(stored, 10'000));
  CHECK(journaled.store.version() == version + 1);
  journaled.journal.reset();
  CHECK(Journaled(folder.path / "state.db").store.all(kube::kConfigMaps).size() ==
        static_cast<std::size_t>(stored + 1));
}

TEST_CASE("a reserve for which there was no room is allocated with a later write") {
  const test::TemporaryFolder folder;
  const auto reserve = folder.path / "reserve";
  Journaled journaled(folder.path / "state.db");
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  rlimit small = usual;
  small.rlim_cur = GENERATE(rlim_t{10'000}, rlim_t{300'000});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  journaled.journal->fill_reserve();
  ::setrlimit(RLIMIT_FSIZE, &usual);
  ::signal(SIGXFSZ, ignored);
  CHECK(std::filesystem::file_size(reserve) < small.rlim_cur);
  journaled.store.put(kube::kConfigMaps, object_of(1));
  CHECK(std::filesystem::file_size(reserve) == 2 << 20);
}

TEST_CASE("a row of a damaged object is set aside, and the others are there") {
  const char* const damage = GENERATE(
      "json_remove(body, '$.metadata.resourceVersion')", "json_remove(body, '$.metadata.name')",
      "json_remove(body, '$.metadata.uid')", "json_remove(body, '$.metadata')",
      "json_remove(body, '$.kind')", "json_remove(body, '$.apiVersion')",
      "json_set(body, '$.kind', 'Secret')", "json_set(body, '$.apiVersion', 'apps/v1')",
      "json_set(body, '$.metadata.resourceVersion', 'x')",
      "json_set(body, '$.metadata.resourceVersion', 7)", "json_set(body, '$.metadata', 'x')",
      "json_set(body, '$.metadata.uid', 'uid-2')", "json_set(body, '$.metadata.namespace', 'b')",
      "json_array(body)", "'null'", "''");
  CAPTURE(damage);
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  {
    Journaled first(file);
    for (const int number : {2, 1}) first.store.put(kube::kConfigMaps, object_of(number));
  }
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  const std::string change =
      "UPDATE objects SET body = " + std::string(damage) + " WHERE name = 'object-1'";
  REQUIRE(sqlite3_exec(database, change.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
  {
    const Journaled second(file);
    CHECK(second.store.all(kube::kConfigMaps).size() == 1);
    REQUIRE(second.unreadable.size() == 1);
    CHECK_THAT(second.unreadable.front(),
               Catch::StartsWith("ConfigMap default/object-1 cannot be read (") &&
                   Catch::Contains("its text is in " + (folder.path / kSetAside).string()));
  }
  CHECK(Journaled(file).unreadable.empty());
}

TEST_CASE("what a change adds to the file has blocks of the disk before it is written") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  Journaled journaled(file);
  CHECK(std::filesystem::file_size(file.string() + "-wal") >= 6U << 20);
  for (int i = 0; i < 40; ++i) {
    journaled.store.put(kube::kConfigMaps, object_of(i, 200'000));
    struct stat status {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    CHECK(status.st_blocks * 512 >= (i + 1) * 200'000);
  }
  // Pages that were freed are used again.
  const auto size = std::filesystem::file_size(file);
  for (int i = 0; i < 40; ++i)
    journaled.store.erase(kube::kConfigMaps, {"default", "object-" + std::to_string(i)});
  for (int i = 0; i < 40; ++i) journaled.store.put(kube::kConfigMaps, object_of(i, 200'000));
  CHECK(std::filesystem::file_size(file) <= size + (1U << 20));
  journaled.journal.reset();
  CHECK(std::filesystem::file_size(file.string() + "-wal") >= 6U << 20);
  CHECK(Journaled(file).store.all(kube::kConfigMaps).size() == 40);
}

TEST_CASE("an object that can neither be read nor moved stays, and the start goes on") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  {
    Journaled first(file);
    for (const int number : {1, 2}) first.store.put(kube::kConfigMaps, object_of(number));
  }
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, "UPDATE objects SET body = '{' WHERE name = 'object-1'", nullptr,
                       nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
  const auto in_the_way = folder.path / kSetAside;
  std::ofstream(in_the_way) << "no folder";
  for (int start = 0; start < 2; ++start) {
    const Journaled blocked(file);
    CHECK(blocked.store.all(kube::kConfigMaps).size() == 1);
    REQUIRE(blocked.unreadable.size() == 1);
    CHECK_THAT(blocked.unreadable.front(),
               Catch::Contains("ConfigMap default/object-1 cannot be read") &&
                   Catch::Contains("stays in " + file.string()) &&
                   kube::test::contains(in_the_way.string()) && Catch::Contains("start again"));
  }
  std::filesystem::remove(in_the_way);
  const Journaled moved(file);
  REQUIRE(moved.unreadable.size() == 1);
  CHECK_THAT(moved.unreadable.front(), Catch::Contains("its text is in " + in_the_way.string()));
}

TEST_CASE("a file that is no database, or a newer one, is refused by name") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state.db";
  const auto owned = node::OwnedDirectory::open(folder.path);
  REQUIRE(owned);
  SECTION("no database") {
    std::ofstream(file) << std::string(5'000, 'x');
    CHECK_THAT(Journal::open(*owned).error().message, kube::test::contains(file.string()));
  }
  SECTION("of a newer version") {
    REQUIRE(Journal::open(*owned));
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
    REQUIRE(sqlite3_exec(database, "PRAGMA user_version=2", nullptr, nullptr, nullptr) ==
            SQLITE_OK);
    sqlite3_close(database);
    CHECK_THAT(Journal::open(*owned).error().message,
               kube::test::contains(file.string()) && Catch::Contains("newer version"));
  }
  SECTION("a folder that was removed") {
    std::filesystem::remove_all(folder.path);
    CHECK_THAT(Journal::open(*owned).error().message, kube::test::contains(file.string()));
  }
}

TEST_CASE("a state directory has one holder, and its files one reader") {
  const test::TemporaryFolder folder;
  const auto path = folder.path / "state" / "trainer";
  auto first = StateDirectory::lock(path);
  REQUIRE(first);
  const auto second = StateDirectory::lock(path);
  REQUIRE_FALSE(second);
  CHECK_THAT(second.error().message,
             kube::test::contains(path.string()) &&
                 Catch::Contains("(process " + std::to_string(::getpid()) + ")"));
  const node::OwnedDirectory& files = (*first)->folder();
  CHECK_FALSE(files.read("kubeconfig"));
  REQUIRE(files.replace("kubeconfig", "text"));
  CHECK(files.read("kubeconfig").value() == "text");
  using std::filesystem::perms;
  CHECK(std::filesystem::status(path / "kubeconfig").permissions() ==
        (perms::owner_read | perms::owner_write));
  CHECK(std::filesystem::status(path).permissions() == perms::owner_all);
  first->reset();
  CHECK(StateDirectory::lock(path));
  CHECK_FALSE(StateDirectory::lock("/proc/none"));
}

TEST_CASE("the token, the certificates and the port are kept") {
  const test::TemporaryFolder folder;
  const auto state = StateDirectory::lock(folder.path);
  REQUIRE(state);
  const auto now = kube::SystemClock().now();
  const auto first = load_access(**state, now);
  REQUIRE(first);
  const auto second = load_access(**state, now);
  REQUIRE(second);
  CHECK(first->token.reveal() == second->token.reveal());
  CHECK(first->certificates.certificate == second->certificates.certificate);
  // The server's certificate ends after a year; the authority stays.
  const auto later = load_access(**state, now + std::chrono::hours(24 * 300));
  REQUIRE(later);
  CHECK(later->token.reveal() == first->token.reveal());
  CHECK(later->certificates.certificate != first->certificates.certificate);
  CHECK(later->certificates.ca_certificate == first->certificates.ca_certificate);
  CHECK(first->is_granted("Bearer " + first->token.reveal()));
  CHECK_FALSE(first->is_granted("Bearer " + first->token.reveal() + "x"));
  CHECK_FALSE(first->is_granted("Basic " + first->token.reveal()));
  CHECK(kept_port(**state) == 0);
  REQUIRE(keep_port(**state, 12'345));
  CHECK(kept_port(**state) == 12'345);
  REQUIRE((*state)->folder().replace("access.json", "{}"));
  CHECK_THAT(load_access(**state, now).error().message, Catch::Contains("access.json"));
}
