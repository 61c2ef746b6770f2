#include "kube/client/watcher.hh"

#include <algorithm>
#include <memory>
#include <utility>

#include "kube/client/json_scan.hh"
#include "kube/client/line_splitter.hh"
#include "kube/client/url.hh"
#include "kube/client/watch_state.hh"
#include "kube/model/json_text.hh"

namespace kube {

namespace {

using watch::Input;
using watch::State;

constexpr std::chrono::seconds kBrief{1};
constexpr int kGone = 410;

std::string selectors(const WatchOptions& options) {
  std::string query;
  const auto add = [&query](const char* name, const std::string& selector) {
    if (!selector.empty()) query += (query.empty() ? "" : "&") + (name + percent_encode(selector));
  };
  add("labelSelector=", options.label_selector);
  add("fieldSelector=", options.field_selector);
  return query;
}

class Watcher {
 public:
  Watcher(ApiClient& client, Resource resource, WatchSink& sink, WatchOptions options)
      : client_(client),
        resource_(std::move(resource)),
        sink_(sink),
        options_(std::move(options)),
        lines_(options_.max_event_bytes) {}

  Task<void> run() {
    State state = watch::Listing{};
    for (;;) {
      const Milliseconds pause = watch::pause_before(state);
      const Milliseconds least = watch::least_pause(state);
      if (pause.count() > 0) co_await sleep(client_.clock(), std::max(jittered(pause), least));
      std::optional<Input> input;
      if (const auto* const resuming = std::get_if<watch::Resuming>(&state)) {
        input = co_await open(resuming->version);
      } else if (std::holds_alternative<watch::Streaming>(state)) {
        input = co_await read();
      } else {
        input = co_await list();
      }
      if (input) state = watch::step(std::move(state), *input);
    }
  }

 private:
  void note(std::string_view what, std::string_view detail) const {
    if (options_.on_note) options_.on_note(what, detail);
  }

  void show_life() const {
    if (options_.on_sign_of_life) options_.on_sign_of_life();
  }

  Milliseconds jittered(Milliseconds pause) {
    const double factor = 0.75 + 0.5 * client_.random().fraction();
    return Milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * factor));
  }

  Task<std::optional<Input>> list() {
    sink_.begin_list();
    std::size_t items = 0;
    std::function<void(std::string_view)> on_item = [this, &items](std::string_view item) {
      ++items;
      upsert(item);
    };
    const auto page =
        co_await client_.list(resource_, options_.ns, selectors(options_), std::move(on_item));
    if (!page) co_return refused(page.error());
    sink_.listed_at(page->resource_version);
    sink_.end_list();
    show_life();
    note("list", std::to_string(items) + " objects at version " + page->resource_version);
    co_return watch::Listed{page->resource_version};
  }

  Task<std::optional<Input>> open(std::string version) {
    const auto timeout =
        static_cast<double>(options_.timeout.count()) * (0.9 + 0.2 * client_.random().fraction());
    const auto seconds = std::max(std::int64_t{1}, static_cast<std::int64_t>(timeout) / 1000);
    ObjectKey collection;
    collection.ns = options_.ns;
    std::string path =
        api_path(resource_, collection) +
        "?watch=true&allowWatchBookmarks=true&resourceVersion=" + percent_encode(version) +
        "&timeoutSeconds=" + std::to_string(seconds);
    if (const std::string query = selectors(options_); !query.empty()) path += "&" + query;
    idle_limit_ = std::chrono::seconds(seconds) + options_.idle_margin;
    lines_ = LineSplitter(options_.max_event_bytes);
    auto stream = co_await client_.stream(std::move(path));
    if (!stream) co_return refused(stream.error());
    stream_ = std::move(*stream);
    opened_at_ = client_.clock().steady();
    show_life();
    note("watch", "from version " + version);
    co_return watch::Opened();
  }

  // Reads one piece of the stream and the events that it completes; nothing if it completes none.
  Task<std::optional<Input>> read() {
    const bool is_soon = client_.clock().steady() - read_at_ < options_.batch;
    // If the events of a server wait, it falls behind, and ends the watch.
    if (is_soon && stream_->is_quiet()) co_await sleep(client_.clock(), options_.batch);
    const auto piece = co_await stream_->read_some(idle_limit_);
    if (!piece || piece->empty()) {
      stream_.reset();
      const bool is_brief = client_.clock().steady() - opened_at_ < kBrief;
      // A timeout is no error: a collection without changes and bookmarks has one, too.
      if (!piece && piece.error().code != ErrorCode::kTimeout)
        co_return refused(piece.error(), is_brief);
      if (lines_.is_within_line()) note("error", "the stream ended within an event");
      co_return watch::Closed{is_brief};
    }
    read_at_ = client_.clock().steady();
    show_life();
    std::optional<Input> outcome;
    std::optional<watch::Seen> seen;  // the last event that has a version
    const bool fits = lines_.feed(*piece, [&](std::string_view line) {
      outcome = on_event(line, seen);
      return !outcome;
    });
    if (!fits) {
      note("malformed", "an event is longer than " + std::to_string(options_.max_event_bytes) +
                            " bytes; listing again");
      outcome = watch::Gone();
    }
    if (outcome) stream_.reset();
    if (!outcome && seen) outcome = std::move(*seen);
    co_return outcome;
  }

  // Returns the input that ends the stream, if the event does.
  std::optional<Input> on_event(std::string_view line, std::optional<watch::Seen>& seen) {
    const auto event = scan_event(line);
    if (!event) {
      note("malformed", "a line of the stream is no event");
      return std::nullopt;
    }
    if (event->type == "ERROR") return on_error_event(event->object);
    if (event->type == "ADDED" || event->type == "MODIFIED") {
      upsert(event->object);
    } else if (event->type == "DELETED") {
      if (!sink_.remove(event->object)) note("malformed", "a deleted object could not be read");
    }
    const auto version = scan_identity(event->object).version;
    if (!seen || !version.empty()) seen = watch::Seen{std::string(version)};
    return std::nullopt;
  }

  Input on_error_event(std::string_view object) {
    HttpResponse answer;
    answer.body = object;
    const auto status = parse_json(object);
    answer.status = status ? static_cast<int>(status->get_int("code", 500)) : 500;
    if (status && status->get_string("reason") == "Expired") answer.status = kGone;
    return refused(error_of(answer));
  }

  void upsert(std::string_view object) {
    if (sink_.upsert(object)) return;
    const auto identity = scan_identity(object);
    note("malformed", "object \"" + std::string(identity.ns) + "/" + std::string(identity.name) +
                          "\" could not be read and is left out");
  }

  // Returns the meaning of an answer other than a list or a stream, or of an error that ended a
  // stream.
  Input refused(const Error& error, bool is_brief = true) {
    const bool is_gone = error.code == ErrorCode::kGone;
    const bool is_unserved = error.code == ErrorCode::kNotFound;
    // If it was cancelled, the next await ends the watch.
    if (error.code != ErrorCode::kCancelled)
      note(is_gone ? "gone" : is_unserved ? "unserved" : "error", error.message);
    if (is_gone) return watch::Gone();
    if (is_unserved) return watch::NotServed();
    return watch::Failed{error.retry_after, is_brief};
  }

  ApiClient& client_;
  Resource resource_;
  WatchSink& sink_;
  WatchOptions options_;
  LineSplitter lines_;
  std::unique_ptr<HttpStream> stream_;
  Clock::Steady opened_at_;
  Clock::Steady read_at_;  // the time of the last piece
  Milliseconds idle_limit_{};
};

}  // namespace

Task<void> run_watch(ApiClient& client, Resource resource, WatchSink& sink, WatchOptions options) {
  Watcher watcher(client, std::move(resource), sink, std::move(options));
  co_await watcher.run();
}

}  // namespace kube
