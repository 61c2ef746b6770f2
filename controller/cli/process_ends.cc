#include "controller/cli/process_ends.hh"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "kube/model/text.hh"
#include "kube/model/visible_text.hh"

namespace trainer {
namespace {

constexpr std::size_t kMaxLines = 3;
constexpr std::size_t kMaxLine = 300;  // bytes
constexpr std::size_t kMaxEnds = 256;  // those of one pod; the latest are kept
constexpr std::size_t kMaxDescribed = 6;

// torch/distributed/elastic/multiprocessing/api.py writes "failed (exitcode: -9) local_rank: 0
// (pid: 17) of binary: /usr/bin/python3", once for each restart.
constexpr std::string_view kFailed = "failed (exitcode: ";
constexpr std::string_view kLocalRank = ") local_rank: ";

// The name of the module that writes a line, and in newer versions its file.
bool is_of_torchrun(std::string_view line) {
  return line.find("torch.distributed.") != line.npos ||
         line.find("torch/distributed/") != line.npos;
}

std::string_view before(std::string_view text, char end) {
  return text.substr(0, text.find(end));
}

std::string text_of(const ProcessEnd& end) {
  std::string how = fmt::format("exit code {}", end.exit_code);
  if (end.exit_code < 0) {
    const std::int64_t signal = -std::int64_t{end.exit_code};
    const char* const name = signal < NSIG ? sigabbrev_np(static_cast<int>(signal)) : nullptr;
    how = fmt::format("signal {}{}", signal, name ? fmt::format(" (SIG{})", name) : "");
  }
  std::string text =
      fmt::format("{} the process of local rank {} ended with {}", end.pod, end.local_rank, how);
  if (!end.timestamp.empty()) text += " at " + std::string(before(end.timestamp, '.'));
  if (!end.timestamp.empty() && text.back() != 'Z') text += "Z";
  if (!end.last_lines.empty()) text += "; the last lines before it:";
  for (const std::string& line : end.last_lines) text += "\n" + line;
  return text;
}

}  // namespace

void ProcessEndReader::take(const LogLine& line) {
  if (line.is_continued || line.text.empty()) return;
  const std::string_view text = line.text;
  if (!is_of_torchrun(text)) {
    lines_.emplace_back(kube::keep_head(text, kMaxLine));
    if (lines_.size() > kMaxLines) lines_.pop_front();
    return;
  }
  const auto at = text.find(kFailed);
  const auto rank_at = at == text.npos ? at : text.find(kLocalRank, at);
  if (rank_at == text.npos) return;
  const auto exit_code = kube::parse_number<int>(before(text.substr(at + kFailed.size()), ')'));
  const auto local_rank =
      kube::parse_number<int>(before(text.substr(rank_at + kLocalRank.size()), ' '));
  if (!exit_code || !local_rank) return;
  if (ends_.size() == kMaxEnds) ends_.erase(ends_.begin());
  ends_.push_back({pod_, line.timestamp, *local_rank, *exit_code, {lines_.begin(), lines_.end()}});
  lines_.clear();
}

std::vector<std::string> describe_ends(std::vector<ProcessEnd> ends) {
  const auto time_of = [](const ProcessEnd& end) {
    return LogLine{end.timestamp, {}}.instant().value_or(LogLine::Instant());
  };
  std::ranges::stable_sort(ends, {}, time_of);
  std::vector<std::string> lines;
  const std::size_t left_out = ends.size() - std::min(ends.size(), kMaxDescribed);
  if (left_out > 0) lines.push_back(fmt::format("{} earlier ends of processes", left_out));
  for (std::size_t i = left_out; i < ends.size(); ++i) lines.push_back(text_of(ends[i]));
  return lines;
}

}  // namespace trainer
