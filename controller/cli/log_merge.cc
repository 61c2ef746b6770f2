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
constexpr kube::Milliseconds kTick{500};

struct Source {
  const LogPod* pod = nullptr;
  std::string container;
  bool is_ended = false;
  std::optional<LogStream> stream;
  std::optional<LogLine> head;  // the next line to print; nullopt at the end
};

using OnError = std::function<void(std::string_view)>;

// Reads the next line into `head`. False where the log broke off.
Task<bool> advance(Source& source, const OnError& on_error) {
  source.head.reset();
  auto line = co_await source.stream->next();
  if (!line) {
    on_error(fmt::format("{}: the log broke off: {}", source.pod->name, line.error().message));
    co_return false;
  }
  source.head = std::move(*line);
  co_return true;
}

// Reads the first line. True where there is none, and nothing went wrong.
Task<bool> is_empty(kube::ApiClient& client, Source& source, const LogQuery& query,
                    const OnError& on_error) {
  auto stream = co_await LogStream::open(client, log_path(*source.pod, source.container, query));
  if (!stream) {
    on_error(fmt::format("{}: no log: {}", source.pod->name, stream.error().message));
    co_return false;
  }
  source.stream.emplace(std::move(*stream));
  co_return co_await advance(source, on_error) && !source.head;
}

// A line without a time stays behind the one before it, so it counts as the oldest.
bool is_older(const Source& a, const Source& b) {
  return a.head->instant().value_or(LogLine::Instant{}) <
         b.head->instant().value_or(LogLine::Instant{});
}

Task<void> merge_batch(kube::ApiClient& client, std::vector<Source> sources, const LogQuery& query,
                       const PrintLine& print, const OnError& on_error) {
  std::vector<Source*> late;
  for (Source& source : sources) {
    if (co_await is_empty(client, source, query, on_error) && source.is_ended)
      late.push_back(&source);
  }
  // containerd writes the log beside the process, so that of one that has just ended may be to
  // come.
  if (!late.empty()) co_await kube::sleep(client.clock(), kTick);
  for (Source* const source : late) co_await is_empty(client, *source, query, on_error);
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
