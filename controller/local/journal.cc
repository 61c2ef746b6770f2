#include "controller/local/journal.hh"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <map>
#include <utility>

#include "controller/node/files.hh"
#include "kube/model/json_text.hh"

namespace trainer {

using kube::Result;
using kube::server::Change;

namespace {

// Of the tables below. It is raised when an older program could not read them.
constexpr int kFormat = 1;

// Without shared memory: the database is this process's alone, as is its folder.
constexpr const char* kSettings =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA journal_size_limit=4194304;"
    "PRAGMA cache_size=-256;";
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

// "GROUP/PLURAL": versions of a group share their objects.
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

}  // namespace

struct Journal::Database {
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
  // A number that a statement without parameters answers.
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
    const std::string body = change.after ? kube::print_json(*change.after) : std::string();
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
  // After a step that failed. SQLite may have rolled the transaction back itself.
  void roll_back() {
    for (const Statement* each : {&begin, &commit, &put, &erase, &set_version})
      sqlite3_reset(each->get());
    if (sqlite3_get_autocommit(handle.get()) == 0) run("ROLLBACK");
  }
};

Journal::Journal(std::unique_ptr<Database> database) : database_(std::move(database)) {}

Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::open(const std::filesystem::path& file) {
  auto database = std::make_unique<Database>();
  database->file = file.string();
  // It has Secrets, and the directory may be one that others can read. What SQLite makes beside it
  // has the same mode.
  if (const node::Fd made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)); made)
    ::fchmod(made.get(), 0600);
  sqlite3* handle = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(file.c_str(), &handle, kFlags, nullptr);
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
  if (!database->is_prepared()) return refused();
  return std::unique_ptr<Journal>(new Journal(std::move(database)));
}

std::int64_t Journal::version() const {
  return database_->number("SELECT value FROM meta WHERE name = 'version'");
}

Result<void> Journal::restore(kube::server::ObjectStore& store,
                              const std::vector<kube::Resource>& resources) {
  std::map<std::string, const kube::Resource*> kinds;
  for (const kube::Resource& resource : resources) kinds.emplace(kind_of(resource), &resource);
  const Statement all = database_->prepare("SELECT kind, body, name FROM objects");
  int row = SQLITE_ERROR;
  while (all && (row = sqlite3_step(all.get())) == SQLITE_ROW) {
    const auto kind = kinds.find(text_at(all.get(), 0));
    if (kind == kinds.end()) continue;
    auto object = kube::parse_json(text_at(all.get(), 1));
    if (!object) {
      return kube::fail(kube::ErrorCode::kInvalid, "{}: {} \"{}\" cannot be read: {}",
                        database_->file, kind->second->kind, text_at(all.get(), 2),
                        object.error().message);
    }
    store.restore(*kind->second, std::move(*object));
  }
  if (row == SQLITE_DONE) return {};
  return kube::fail(kube::ErrorCode::kInvalid, "{}: the database cannot be read: {}",
                    database_->file, database_->why());
}

void Journal::write(const Change& change) {
  Database& database = *database_;
  if (database.step(database.begin) && database.store(change) && database.step(database.commit))
    return;
  const std::string why = database.why();
  database.roll_back();
  throw StorageError(database.file + ": the change was not stored: " + why +
                     ": nothing was changed, and reads go on; make room, and send it again");
}

}  // namespace trainer
