#include "local/server/journal.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "kube/model/digest.hh"

namespace trainer {

using kube::Result;
using kube::server::Change;

namespace {

// This is the format of the tables below. It is raised when an older program could not read them.
constexpr int kFormat = 1;

// There is no shared memory: the database is this process's alone, and so is its folder.
constexpr const char* kSettings =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA wal_autocheckpoint=1000;"
    "PRAGMA temp_store=MEMORY;"  // other disks may be full, too
    "PRAGMA cache_size=-256;";
// The write-ahead log keeps its blocks: after a checkpoint it is written from its beginning. It has
// up to 1,000 pages before, and those of the following change.
constexpr off_t kLogBytes = 6 << 20;
// The database grows in such steps, whose blocks are allocated.
constexpr int kStepBytes = 1 << 20;
constexpr std::int64_t kPageBytes = 4'096;
// These pages are for the trees of the table and its index: a change may add them besides its text.
constexpr std::int64_t kTreePages = 32;
constexpr const char* kTables =
    "BEGIN;"
    "CREATE TABLE objects (kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
    " uid TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,"
    " PRIMARY KEY (kind, ns, name));"
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
    "INSERT INTO meta VALUES ('version', 1);"
    "PRAGMA user_version=1;"
    "COMMIT;";

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Returns "GROUP/PLURAL": versions of a group share their objects.
std::string kind_of(const kube::Resource& resource) {
  return resource.group + "/" + resource.plural;
}

std::string text_at(sqlite3_stmt* row, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr
             ? std::string()
             : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

// The text outlives the step. (bind() of std would be found for std::string.)
void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

// Clients delete to make room. Returns whether the change is a deletion, or follows from one: an
// orphan loses an owner.
bool is_of_deletion(const Change& change) {
  if (!change.after) return true;
  const auto owners = [](const kube::server::Object& object) {
    return object->get("metadata").get_array("ownerReferences").size();
  };
  return change.after->get("metadata").find("deletionTimestamp") != nullptr ||
         (change.before && owners(change.after) < owners(change.before));
}

std::int64_t most_pages_of(const Change& change) {
  constexpr std::size_t kTextOfPage = 4'000;
  const std::size_t text = change.after ? change.text->size() : 0;
  return static_cast<std::int64_t>(text / kTextOfPage) + kTreePages;
}

}  // namespace

struct Journal::Database {
  const node::OwnedDirectory& folder;
  std::string name;
  std::string file;
  std::unique_ptr<sqlite3, Close> handle;
  Statement begin, commit, put, erase, set_version;

  bool run(const char* text) {
    return sqlite3_exec(handle.get(), text, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  Statement prepare(const char* text) const {
    sqlite3_stmt* made = nullptr;
    sqlite3_prepare_v2(handle.get(), text, -1, &made, nullptr);
    return Statement(made);
  }
  // Returns the number that is the answer of a statement without parameters.
  std::int64_t number(const char* text) const {
    const Statement statement = prepare(text);
    const bool has_row = statement && sqlite3_step(statement.get()) == SQLITE_ROW;
    return has_row ? sqlite3_column_int64(statement.get(), 0) : 0;
  }
  bool step(const Statement& statement) {
    const bool is_done = sqlite3_step(statement.get()) == SQLITE_DONE;
    if (is_done) sqlite3_reset(statement.get());
    return is_done;
  }
  std::string why() const { return sqlite3_errmsg(handle.get()); }
  bool is_disk_full() const {
    const int error = sqlite3_system_errno(handle.get());
    return sqlite3_errcode(handle.get()) == SQLITE_FULL || error == ENOSPC || error == EDQUOT;
  }
  bool control(int operation, void* argument) {
    return sqlite3_file_control(handle.get(), "main", operation, argument) == SQLITE_OK;
  }
  // Closing the database keeps the log's blocks.
  bool keep_blocks() {
    int is_log_kept = 1, step = kStepBytes;
    return control(SQLITE_FCNTL_PERSIST_WAL, &is_log_kept) &&
           control(SQLITE_FCNTL_CHUNK_SIZE, &step);
  }
  bool allocate_log() const {
    const auto log = folder.open_file(name + "-wal", O_RDWR);
    return log && posix_fallocate(log->get(), 0, kLogBytes) == 0;
  }
  // Allocates blocks for so many more pages. Returns for how many pages there are blocks, free
  // pages included. A checkpoint gives back all except the last step that has pages.
  std::int64_t allocate(std::int64_t pages) {
    constexpr std::int64_t kStepPages = kStepBytes / kPageBytes;
    const std::int64_t count = number("PRAGMA page_count");
    const std::int64_t unused = number("PRAGMA freelist_count");
    const std::int64_t spare = unused + (kStepPages - count % kStepPages) % kStepPages;
    const std::int64_t wanted = std::max<std::int64_t>(pages - unused, 0) + count;
    sqlite3_int64 bytes = wanted * kPageBytes;
    if (!control(SQLITE_FCNTL_SIZE_HINT, &bytes)) return std::min(spare, pages - 1);
    return std::max(spare, pages);
  }

  bool is_prepared() {
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
    put = prepare(
        "INSERT OR REPLACE INTO objects (kind, ns, name, uid, version, body)"
        " VALUES (?, ?, ?, ?, ?, ?)");
    erase = prepare("DELETE FROM objects WHERE kind = ? AND ns = ? AND name = ?");
    set_version = prepare("UPDATE meta SET value = ? WHERE name = 'version'");
    return begin && commit && put && erase && set_version;
  }
  bool store(const Change& change) {
    const std::string kind = kind_of(*change.resource);
    const std::string_view body = change.after ? *change.text : std::string_view();
    const std::string_view uid =
        change.after ? change.after->get("metadata").get_string("uid") : std::string_view();
    const Statement& statement = change.after ? put : erase;
    bind_text(statement.get(), 1, kind);
    bind_text(statement.get(), 2, change.key.ns);
    bind_text(statement.get(), 3, change.key.name);
    if (change.after) {
      bind_text(statement.get(), 4, uid);
      sqlite3_bind_int64(statement.get(), 5, change.version);
      bind_text(statement.get(), 6, body);
    }
    sqlite3_bind_int64(set_version.get(), 1, change.version);
    return step(statement) && step(set_version);
  }
  // It is called after a step that failed. SQLite may have rolled the transaction back itself.
  void roll_back() {
    for (const Statement* each : {&begin, &commit, &put, &erase, &set_version})
      sqlite3_reset(each->get());
    if (sqlite3_get_autocommit(handle.get()) == 0) run("ROLLBACK");
  }
};

Journal::Journal(std::unique_ptr<Database> database, const node::OwnedDirectory& folder)
    : database_(std::move(database)), reserve_(folder), has_reserve_(database_->allocate_log()) {
  spare_pages_ = database_->allocate(kTreePages);
}

Journal::~Journal() = default;

// The database, and SQLite's files beside it, must all be this user's.
Result<void> Journal::check_files(const node::OwnedDirectory& folder, const std::string& name) {
  for (const std::string& other :
       {name + "-wal", name + "-shm", name + "-journal", std::string(kReserveFile)})
    if (const auto file = folder.open_file(other, O_RDONLY);
        !file && file.error().code != kube::ErrorCode::kNotFound)
      return tl::unexpected(file.error());
  const auto made = folder.open_file(name, O_RDWR | O_CREAT);
  if (!made) return tl::unexpected(made.error());
  // The file has Secrets, and others may be able to read the directory. The files that SQLite makes
  // beside it have the same mode.
  ::fchmod(made->get(), 0600);
  return {};
}

Result<std::unique_ptr<Journal>> Journal::open(const node::OwnedDirectory& folder,
                                               const std::string& name) {
  if (auto checked = check_files(folder, name); !checked) return tl::unexpected(checked.error());
  auto database =
      std::unique_ptr<Database>(new Database{folder, name, (folder.path() / name).string()});
  sqlite3* handle = nullptr;
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
  const int opened = sqlite3_open_v2(database->file.c_str(), &handle, kFlags, nullptr);
  database->handle.reset(handle);
  const auto refused = [&] {
    return kube::fail(kube::ErrorCode::kInvalid, "{}: the database cannot be opened: {}",
                      database->file, database->why());
  };
  if (opened != SQLITE_OK || !database->run(kSettings)) return refused();
  const std::int64_t format = database->number("PRAGMA user_version");
  if (format > kFormat) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "{}: a newer version of this program has written it (format {}, this one "
                      "knows {}): use that version, or another state directory",
                      database->file, format, kFormat);
  }
  if (format == 0 && !database->run(kTables)) return refused();
  if (!database->is_prepared() || !database->keep_blocks()) return refused();
  return std::unique_ptr<Journal>(new Journal(std::move(database), folder));
}

std::int64_t Journal::version() const {
  return database_->number("SELECT value FROM meta WHERE name = 'version'");
}

// This is a row of `objects`.
struct Journal::Row {
  std::int64_t id = 0;
  kube::Resource resource;
  kube::ObjectKey key;
  std::string body;
};

Result<std::vector<std::string>> Journal::restore(kube::server::ObjectStore& store,
                                                  const std::vector<kube::Resource>& resources) {
  std::map<std::string, const kube::Resource*> kinds;
  for (const kube::Resource& resource : resources) kinds.emplace(kind_of(resource), &resource);
  const Statement all = database_->prepare("SELECT kind, ns, name, body, rowid FROM objects");
  std::vector<std::pair<Row, std::string>> unreadable;
  int row = SQLITE_ERROR;
  while (all && (row = sqlite3_step(all.get())) == SQLITE_ROW) {
    const auto kind = kinds.find(text_at(all.get(), 0));
    if (kind == kinds.end()) continue;
    const kube::ObjectKey key{text_at(all.get(), 1), text_at(all.get(), 2)};
    std::string body = text_at(all.get(), 3);
    const auto restored = store.restore(*kind->second, key, std::move(body));
    if (restored) continue;
    unreadable.emplace_back(
        Row{sqlite3_column_int64(all.get(), 4), *kind->second, key, text_at(all.get(), 3)},
        restored.error().message);
  }
  if (row != SQLITE_DONE) {
    return kube::fail(kube::ErrorCode::kInvalid, "{}: the database cannot be read: {}",
                      database_->file, database_->why());
  }
  std::vector<std::string> sentences;
  for (const auto& [each, why] : unreadable) {
    const auto file = set_aside(each);
    const std::string what =
        fmt::format("{} {} cannot be read ({})", each.resource.kind, each.key.to_string(), why);
    sentences.push_back(
        file
            ? fmt::format(
                  "{}: its text is in {}: correct it and apply it again, or remove the file", what,
                  *file)
            : fmt::format("{}, and its text stays in {}, since it cannot be moved ({}): mend that, "
                          "and start again; or apply the object again, which replaces the text",
                          what, database_->file, file.error().message));
  }
  return sentences;
}

// Writes the file first: the text is in at least one of both whenever this process ends. Returns
// the file's path.
Result<std::string> Journal::set_aside(const Row& row) {
  const auto folder = database_->folder.make_folder(kSetAside);
  if (!folder) return tl::unexpected(folder.error());
  // The name depends on the content, so that another text of the same object does not replace it.
  const std::string file =
      fmt::format("{}-{}.json", row.resource.plural, kube::sha256_hex(row.body).substr(0, 12));
  if (auto written = folder->replace(file, row.body); !written)
    return tl::unexpected(std::move(written.error()));
  const Statement erase = database_->prepare("DELETE FROM objects WHERE rowid = ?");
  sqlite3_bind_int64(erase.get(), 1, row.id);
  if (!database_->step(erase)) {
    return kube::fail(kube::ErrorCode::kInvalid, "{}: the database cannot be written: {}",
                      database_->file, database_->why());
  }
  return (folder->path() / file).string();
}

bool Journal::try_to_write(const Change& change) {
  Database& database = *database_;
  return database.step(database.begin) && database.store(change) && database.step(database.commit);
}

void Journal::write(const Change& change) {
  Database& database = *database_;
  const bool is_deletion = is_of_deletion(change);
  const std::int64_t pages = most_pages_of(change);
  std::string why = "the disk is full";
  if (is_deletion || has_room_for(pages)) {
    bool is_written = try_to_write(change);
    if (!is_written && database.is_disk_full() && is_deletion) {
      database.roll_back();
      reserve_.give_back();
      has_reserve_ = false;
      // The pages now have room in the file, and the log is written from its beginning.
      database.run("PRAGMA wal_checkpoint");
      is_written = try_to_write(change);
    }
    if (is_written) {
      spare_pages_ = std::max<std::int64_t>(spare_pages_ - pages, 0);
      return;
    }
    why = database.why();
    database.roll_back();
  }
  throw StorageError(
      fmt::format("{}: the change was not stored: {}: nothing was changed, and {} go "
                  "on; make room, and send it again",
                  database.file, why, is_deletion ? "reads" : "reads and deletes"));
}

bool Journal::has_room_for(std::int64_t pages) {
  if (!has_reserve_) fill_reserve();
  if (has_reserve_ && spare_pages_ < pages) spare_pages_ = database_->allocate(pages);
  return has_reserve_ && spare_pages_ >= pages;
}

void Journal::fill_reserve() {
  has_reserve_ = database_->allocate_log() && reserve_.fill();
}

}  // namespace trainer
