#include "controller/cli/log_merge.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/client/clock.hh"

namespace trainer {

using kube::Result;
using kube::Task;

namespace {

constexpr std::size_t kMaxStreams = 64;
// The pause before a log that may be late is read again.
constexpr kube::Milliseconds kLateLogPause{500};

struct Source {
  const LogPod* pod = nullptr;
  std::string container;
  bool is_ended = false;
  std::optional<LogStream> stream;  // nullopt if there is none, or it was cut
  std::optional<LogLine> head;      // the next line to print; nullopt at the end
};

using OnError = std::function<void(std::string_view)>;

// Reads the next line into `head`.
Task<void> advance(Source& source, const OnError& on_error) {
  source.head.reset();
  auto line = co_await source.stream->next();
  if (line) {
    source.head = std::move(*line);
  } else {
    source.stream.reset();
    on_error(fmt::format("{}: the log broke off: {}", source.pod->name, line.error().message));
  }
}

// Opens the log and reads its first line.
Task<void> begin(kube::ApiClient& client, Source& source, const LogQuery& query,
                 const OnError& on_error) {
  auto stream = co_await LogStream::open(client, log_path(*source.pod, source.container, query));
  if (!stream) {
    on_error(fmt::format("{}: no log: {}", source.pod->name, stream.error().message));
    co_return;
  }
  source.stream.emplace(std::move(*stream));
  co_await advance(source, on_error);
}

// containerd writes logs asynchronously: that of a container that has just ended may be empty.
bool may_be_late(const Source& source) {
  return source.is_ended && source.stream && !source.head;
}

// A line without a time counts as the oldest, so that it follows the line before it.
bool is_older(const Source& a, const Source& b) {
  return a.head->instant().value_or(LogLine::Instant{}) <
         b.head->instant().value_or(LogLine::Instant{});
}

Task<void> merge_batch(kube::ApiClient& client, std::vector<Source> sources, const LogQuery& query,
                       const PrintLine& print, const OnError& on_error) {
  for (Source& source : sources) co_await begin(client, source, query, on_error);
  if (std::any_of(sources.begin(), sources.end(), may_be_late)) {
    co_await kube::sleep(client.clock(), kLateLogPause);
    for (Source& source : sources) {
      if (may_be_late(source)) co_await begin(client, source, query, on_error);
    }
  }
  while (true) {
    std::erase_if(sources, [](const Source& source) { return !source.head; });
    if (sources.empty()) co_return;
    Source& oldest = *std::min_element(sources.begin(), sources.end(), is_older);
    print(*oldest.pod, oldest.container, *oldest.head);
    co_await advance(oldest, on_error);
  }
}

}  // namespace

Task<Result<void>> merge_logs(kube::ApiClient& client, std::vector<LogPod> pods, LogQuery query,
                              PrintLine print, OnError on_error) {
  std::sort(pods.begin(), pods.end());
  std::vector<Source> sources;
  for (const LogPod& pod : pods) {
    for (const LogContainer& container : pod.containers) {
      if (!container.has_log) continue;
      Source source;
      source.pod = &pod;
      source.container = container.name;
      source.is_ended = container.is_ended;
      sources.push_back(std::move(source));
      if (sources.size() < kMaxStreams) continue;
      std::vector<Source> batch = std::exchange(sources, {});
      co_await merge_batch(client, std::move(batch), query, print, on_error);
    }
  }
  co_await merge_batch(client, std::move(sources), query, print, on_error);
  co_return Result<void>();
}

}  // namespace trainer
