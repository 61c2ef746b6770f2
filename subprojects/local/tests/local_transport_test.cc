// Requests to local mode's API within the process: answers, watches, deadlines, cancellation.
#include <algorithm>
#include <atomic>

#include "kube/client/object_sink.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"
#include "local/server/journal.hh"
#include "local/tests/local_api.hh"

using namespace trainer;
using kube::ErrorCode;
using kube::Json;
using kube::Task;

namespace {

constexpr const char* kConfigMapsPath = "/api/v1/namespaces/default/configmaps";

// Admission that waits until it is released.
struct Gate {
  std::shared_ptr<kube::Notifier> opened;
  bool is_open = false;
  std::atomic<int> arrived = 0;

  Task<ApiServer::Admitted> wait(kube::server::PendingWrite write) {
    ++arrived;
    while (!is_open) co_await opened->wait();
    co_return write;
  }
};

// A log without end, whose reader says when it has gone.
struct EndlessLog {
  std::atomic<bool> has_ended = false;
  std::shared_ptr<kube::Notifier> never;

  Task<kube::Result<void>> read(kube::WriteBody write) {
    struct End {
      std::atomic<bool>& has_ended;
      ~End() { has_ended = true; }
    };
    const End end{has_ended};
    std::string first = "first\n";
    co_await write(std::move(first));
    for (;;) co_await never->wait();
  }
};

}  // namespace

TEST_CASE_METHOD(test::LocalApi, "in process: objects are written, read and listed") {
  start();
  REQUIRE(create(test::config_map("a")));
  const auto again = create(test::config_map("a"));
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::kAlreadyExists);
  const auto got = kube::run_task(io, client->get(kube::kConfigMaps, {"default", "a"}));
  REQUIRE(got);
  CHECK(got->get("data").get_string("value") == "1");
  std::vector<std::string> names;
  std::function<void(std::string_view)> on_item = [&names](std::string_view item) {
    names.push_back(kube::ObjectMeta::of(*kube::parse_json(item)).name);
  };
  REQUIRE(kube::run_task(io, client->list(kube::kConfigMaps, "default", "", on_item)));
  CHECK(names == std::vector<std::string>{"a"});
}

TEST_CASE_METHOD(test::LocalApi,
                 "in process: a watch shows what comes, and goes on after its end") {
  start();
  REQUIRE(create(test::config_map("before")));
  std::vector<std::string> seen;
  kube::ObjectSink sink(
      {[&seen](Json object) { seen.push_back(kube::ObjectMeta::of(object).name); },
       [](const std::string&) {}, [] {}});
  kube::WatchOptions options;
  options.timeout = kube::Milliseconds(1'000);
  kube::TaskGroup tasks(io.get_executor(), nullptr);
  tasks.spawn("watch", kube::run_watch(*client, kube::kConfigMaps, sink, options));
  const auto has_seen = [&](const std::string& name) {
    return kube::run_until(io, [&] { return std::ranges::count(seen, name) > 0; });
  };
  CHECK(has_seen("before"));
  for (const char* name : {"first", "second"}) {
    REQUIRE(create(test::config_map(name)));
    CHECK(has_seen(name));
    // Longer than the watch lasts, so that the next one comes over another stream.
    kube::run_task(io, kube::sleep(clock, std::chrono::milliseconds(1'300)));
  }
  CHECK(std::ranges::count(seen, "first") == 1);
  tasks.cancel();
  kube::run_task(io, tasks.join());
}

TEST_CASE_METHOD(test::LocalApi,
                 "in process: a request that waits for too long ends with kTimeout") {
  Gate gate;
  gate.opened = std::make_shared<kube::Notifier>(server_io.get_executor());
  hooks.admit = [&gate](kube::server::PendingWrite write, Caller) {
    return gate.wait(std::move(write));
  };
  start();
  kube::HttpRequest request("POST", kConfigMapsPath);
  request.content_type = "application/json";
  request.body = kube::print_json(test::config_map("late"));
  request.deadline = kube::Milliseconds(50);
  const auto sent = send(request);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::kTimeout);
  REQUIRE(kube::run_until(io, [&gate] { return gate.arrived == 1; }));
  request.deadline = kube::Milliseconds(0);
  CHECK(send(request).error().code == ErrorCode::kTimeout);
  CHECK(gate.arrived == 1);
  on_server([&gate] {
    gate.is_open = true;
    gate.opened->notify();
  });
  const auto is_stored = [&] {
    return send(kube::HttpRequest("GET", std::string(kConfigMapsPath) + "/late"))->status == 200;
  };
  // The write goes on in several steps, between which a request may be answered.
  int requests = 0;
  while (!is_stored()) REQUIRE(++requests < 1'000);
  end();  // the server's thread refers to the gate
}

TEST_CASE_METHOD(test::LocalApi, "in process: cancelled, a request and a stream end at once") {
  EndlessLog log_of_pod;
  log_of_pod.never = std::make_shared<kube::Notifier>(server_io.get_executor());
  hooks.read_logs = [&](kube::server::LogQuery, kube::WriteBody write) {
    return log_of_pod.read(std::move(write));
  };
  Gate gate;
  gate.opened = std::make_shared<kube::Notifier>(server_io.get_executor());
  hooks.admit = [&gate](kube::server::PendingWrite write, Caller) {
    return gate.wait(std::move(write));
  };
  store.put(kube::kPods, test::pod("p"));
  start();
  SECTION("a write") {
    kube::TaskGroup tasks(io.get_executor(), nullptr);
    std::function<Task<void>()> write = [this]() -> Task<void> {
      co_await client->create(kube::kConfigMaps, test::config_map("a"));
    };
    tasks.spawn("write", write());
    REQUIRE(kube::run_until(io, [&] { return gate.arrived == 1; }));
    tasks.cancel();
    kube::run_task(io, tasks.join());
    on_server([&gate] {
      gate.is_open = true;
      gate.opened->notify();
    });
  }
  SECTION("a log that is followed") {
    auto stream =
        kube::run_task(io, client->stream("/api/v1/namespaces/default/pods/p/log?follow=true"));
    REQUIRE(stream);
    const auto lines = kube::run_task(io, test::read_until(**stream, test::has_lines(1)));
    CHECK(lines == "first\n");
    CHECK((*stream)->is_quiet());
    const auto idle = kube::run_task(io, (*stream)->read_some(kube::Milliseconds(20)));
    REQUIRE_FALSE(idle);
    CHECK(idle.error().code == ErrorCode::kTimeout);
    CHECK_FALSE(log_of_pod.has_ended);
    stream->reset();
    CHECK(kube::run_until(io, [&] { return log_of_pod.has_ended.load(); }));
  }
  end();  // the server's thread refers to the gate and the log
}

TEST_CASE_METHOD(test::LocalApi, "in process: an exception is a 500, and the server goes on") {
  hooks.admit = [](kube::server::PendingWrite, Caller) -> Task<ApiServer::Admitted> {
    throw std::runtime_error("a bug");
  };
  start();
  const auto failed = create(test::config_map("a"));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().status == 500);
  CHECK(send(kube::HttpRequest("GET", kConfigMapsPath))->status == 200);
}

TEST_CASE_METHOD(test::LocalApi, "a change that cannot be stored is a 500, and reads go on") {
  bool is_full = false;
  store.set_journal([&is_full](const kube::server::Change&) {
    if (is_full) throw StorageError("no space");
  });
  start();
  REQUIRE(create(test::config_map("a")));
  on_server([&is_full] { is_full = true; });
  const auto refused = create(test::config_map("b"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == 500);
  CHECK(refused.error().message == "no space");
  CHECK(send(kube::HttpRequest("GET", std::string(kConfigMapsPath) + "/a"))->status == 200);
  CHECK(send(kube::HttpRequest("GET", std::string(kConfigMapsPath) + "/b"))->status == 404);
  on_server([&is_full] { is_full = false; });
  CHECK(create(test::config_map("b")));
}

TEST_CASE("a watch whose client does not read ends before it holds more than it may") {
  kube::asio::io_context io;
  kube::SystemClock clock;
  kube::server::ObjectStore store;
  store.add_collection(kube::kConfigMaps);
  Watches watches(io.get_executor(), clock, store, 100);
  const auto kinds = test::few_kinds();
  kube::server::Watch watch;
  watch.kind = &kinds[1];
  watch.line = [](const kube::server::Change& change) { return change.key.name + "\n"; };
  const kube::StreamBody body = watches.open(watch);
  for (int i = 0; i < 30; ++i) {
    Json object = test::config_map("object-" + std::to_string(i));
    object["metadata"].set("uid", std::to_string(i));
    store.put(kube::kConfigMaps, object);
  }
  std::string text;
  std::function<Task<bool>(std::string)> append = [&text](std::string piece) -> Task<bool> {
    text += piece;
    co_return true;
  };
  kube::run_task(io, body(append));
  CHECK_THAT(text, Catch::StartsWith("object-0\nobject-1\n"));
  CHECK(text.size() <= 100);
}
