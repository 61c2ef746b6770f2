#include "runtimes/stall/stacks.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/text.hh"
#include "kube/model/visible_text.hh"

namespace trainer::stall {
namespace {

constexpr std::size_t kMaxThreads = 32;
constexpr std::size_t kMaxFrames = 48;
constexpr std::size_t kMaxChildren = 16;
constexpr std::size_t kMaxText = 16U << 10;  // bytes of faulthandler
constexpr std::size_t kMaxName = 64;

// ---- kinds of frames, each as "FILE:LINE FUNCTION"

bool has(std::string_view frame, std::string_view part) {
  return frame.find(part) != std::string_view::npos;
}

bool is_packages(std::string_view frame) {
  return has(frame, "/site-packages/") || has(frame, "/dist-packages/");
}

bool is_of_torch(std::string_view frame) {
  return has(frame, "-packages/torch/");
}

bool is_of_python(std::string_view frame) {
  return frame.starts_with("<frozen") || (has(frame, "/lib/python3") && !is_packages(frame));
}

// The reporter wraps functions of torch, so its frames may be inside those of the user.
bool is_of_reporter(std::string_view frame) {
  return has(frame, "trainer_report") || has(frame, "/sitecustomize.py:");
}

bool is_users(std::string_view frame) {
  return !frame.empty() && !is_of_python(frame) && !is_of_torch(frame) && !is_of_reporter(frame);
}

// A checkpoint of torch/distributed writes files, and calls collectives only in frames inside.
bool is_checkpoint(std::string_view frame) {
  return has(frame, "/torch/distributed/checkpoint/");
}

bool is_collective(std::string_view frame) {
  constexpr std::array<std::string_view, 4> kFolders{"/torch/distributed/", "/torch/autograd/",
                                                     "/horovod/", "/deepspeed/comm/"};
  if (is_checkpoint(frame)) return false;
  if (std::any_of(kFolders.begin(), kFolders.end(),
                  [frame](std::string_view folder) { return has(frame, folder); }))
    return true;
  return (has(frame, "/torch/cuda/__init__.py:") && frame.ends_with(" synchronize")) ||
         (has(frame, "/torch/cuda/streams.py:") &&
          (frame.ends_with(" synchronize") || frame.ends_with(" wait")));
}

// In these frames of Python and torch, another thread or process of the rank is awaited.
bool awaits_helper(std::string_view frame) {
  constexpr std::array<std::string_view, 6> kFiles{"/threading.py:",    "/queue.py:",
                                                   "/selectors.py:",    "/concurrent/futures/",
                                                   "/multiprocessing/", "/subprocess.py:"};
  if (is_of_python(frame))
    return std::any_of(kFiles.begin(), kFiles.end(),
                       [frame](std::string_view file) { return has(frame, file); });
  return has(frame, "/torch/utils/data/dataloader.py:") && frame.ends_with("_get_data");
}

template <class Frames>
std::string_view users_line(const Frames& frames) {
  const auto found = std::find_if(frames.begin(), frames.end(),
                                  [](std::string_view frame) { return is_users(frame); });
  return found == frames.end() ? std::string_view() : std::string_view(*found);
}

Wait wait_of_frames(const std::vector<std::string>& frames) {
  for (const std::string& frame : frames) {
    if (is_collective(frame)) return Wait::kWaiting;
    if (is_users(frame) || is_checkpoint(frame)) return Wait::kAway;
  }
  return frames.empty() ? Wait::kUnknown : Wait::kAway;
}

// ---- texts of faulthandler

struct SignalStack {
  bool is_current = false;
  std::vector<std::string> frames;
};

// Reads `  File "PATH", line N in FUNCTION`.
std::optional<std::string> signal_frame(std::string_view line) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kFile)) return std::nullopt;
  const std::size_t name_end = line.rfind(kLine);
  if (name_end == std::string_view::npos || name_end < kFile.size()) return std::nullopt;
  const std::string_view rest = line.substr(name_end + kLine.size());
  const std::size_t number_end = rest.find(" in ");
  if (number_end == std::string_view::npos) return std::nullopt;
  return clean_text(fmt::format("{}:{} {}", line.substr(kFile.size(), name_end - kFile.size()),
                                rest.substr(0, number_end), rest.substr(number_end + 4)));
}

// Each text has at most kMaxText bytes, so the stacks are bounded.
std::vector<SignalStack> signal_stacks(std::string_view text) {
  std::vector<SignalStack> stacks;
  text = text.substr(0, kMaxText);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_current =
        line.starts_with("Current thread 0x") || line.starts_with("Stack (most recent");
    if (is_current || line.starts_with("Thread 0x"))
      stacks.push_back({is_current, {}});
    else if (auto frame = stacks.empty() ? std::nullopt : signal_frame(line))
      stacks.back().frames.push_back(std::move(*frame));
  }
  std::stable_partition(stacks.begin(), stacks.end(),
                        [](const SignalStack& each) { return each.is_current; });
  return stacks;
}

bool is_loaders(const SignalStack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(), [](std::string_view frame) {
    return has(frame, "/torch/utils/data/_utils/worker.py");
  });
}

// Python starts these processes itself, and a spawned one by a command: `<string>` is no file.
bool is_of_starter(std::string_view frame) {
  return frame.starts_with("<string>:") || has(frame, "/multiprocessing/resource_tracker.py:") ||
         has(frame, "/multiprocessing/forkserver.py:");
}

// ---- the worker process or thread that a main thread waits for

bool find_child(const Stacks& stacks, bool is_loader, Summary& summary) {
  for (const Child& child : stacks.children)
    for (SignalStack& stack : signal_stacks(child.text)) {
      if (is_loader != is_loaders(stack)) continue;
      std::erase_if(stack.frames, is_of_starter);
      if (stack.frames.empty()) continue;
      std::string_view line = users_line(stack.frames);
      if (line.empty() && is_loader) line = stack.frames.front();
      if (line.empty()) continue;
      summary.helper = line;
      summary.where = fmt::format("worker process {}", child.pid);
      return true;
    }
  return false;
}

// A thread that waits for others itself is idle, as those of a pool are.
bool find_thread(const Stacks& stacks, Summary& summary) {
  for (const Thread& thread : stacks.threads) {
    const std::string_view line = users_line(thread.frames);
    if (thread.is_main || line.empty() || awaits_helper(thread.frames.front())) continue;
    summary.helper = line;
    summary.where = "thread " + thread.name;
    return true;
  }
  return false;
}

void find_helper(const Stacks& stacks, const std::vector<std::string>& frames, Summary& summary) {
  for (const std::string& frame : frames) {
    if (is_users(frame)) return;
    if (!awaits_helper(frame)) continue;
    if (find_child(stacks, true, summary) || find_thread(stacks, summary)) return;
    find_child(stacks, false, summary);
    return;
  }
}

// ---- reading

// One rank's stacks share a number of bytes.
struct Budget {
  std::size_t left = kMaxStacks;

  std::string take(std::string_view text, std::size_t limit, bool keeps_lines = false) {
    constexpr std::size_t kEach = sizeof(std::string);
    if (left <= kEach) return {};
    left -= kEach;
    std::string taken;
    if (!keeps_lines) {
      taken = clean_text(text, std::min(limit, left));
    } else {
      text = kube::head_of(text, std::min(limit, left));
      taken.reserve(text.size());
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        taken += clean_text(text.substr(at, end - at), text.size());
        if (end < text.size()) taken += '\n';
        at = end + 1;
      }
    }
    left -= std::min(taken.size(), left);
    return taken;
  }
  bool is_used_up() const { return left < 256; }
};

tl::unexpected<kube::Error> wrong(std::string_view member, std::string_view type) {
  return kube::fail(kube::ErrorCode::kInvalid, "`dump.{}` must be {}", member, type);
}

// Returns the text of a member, which may be missing.
kube::Result<std::string_view> text_of(const kube::Json& item, std::string_view list,
                                       std::string_view name) {
  const kube::Json* const found = item.find(name);
  if (found == nullptr) return std::string_view();
  if (!found->is_string()) return wrong(fmt::format("{}[].{}", list, name), "a string");
  return std::string_view(found->as_string());
}

kube::Result<const kube::Json::Array*> items_of(const kube::Json& dump, std::string_view name) {
  static const kube::Json::Array kNone;
  const kube::Json* const found = dump.find(name);
  if (found == nullptr) return &kNone;
  if (!found->is_array()) return wrong(name, "a list");
  return &found->as_array();
}

kube::Result<Thread> read_thread(const kube::Json& item, Budget& budget) {
  if (!item.is_object()) return wrong("threads[]", "an object");
  Thread thread;
  for (const auto& [name, member] :
       {std::pair{"name", &Thread::name}, {"state", &Thread::state}, {"wchan", &Thread::wchan}}) {
    const auto text = text_of(item, "threads", name);
    if (!text) return tl::unexpected(text.error());
    thread.*member = budget.take(*text, kMaxName);
  }
  const kube::Json& is_main = item.get("main");
  if (!is_main.is_null() && !is_main.is_bool()) return wrong("threads[].main", "true or false");
  thread.is_main = is_main.is_bool() && is_main.as_bool();
  const kube::Json& frames = item.get("frames");
  if (!frames.is_null() && !frames.is_array()) return wrong("threads[].frames", "a list");
  for (const kube::Json& frame : item.get_array("frames")) {
    if (!frame.is_string()) return wrong("threads[].frames[]", "a string");
    if (thread.frames.size() == kMaxFrames || budget.is_used_up()) break;
    thread.frames.push_back(budget.take(frame.as_string(), kMaxLine));
  }
  return thread;
}

kube::Result<Child> read_child(const kube::Json& item, Budget& budget) {
  if (!item.is_object()) return wrong("children[]", "an object");
  Child child;
  const kube::Json& pid = item.get("pid");
  if (!pid.is_null() && !pid.is_int()) return wrong("children[].pid", "an integer");
  child.pid = item.get_int("pid", -1);
  for (const auto& [name, member] : {std::pair{"command", &Child::command},
                                     {"state", &Child::state},
                                     {"wchan", &Child::wchan},
                                     {"text", &Child::text}}) {
    const auto text = text_of(item, "children", name);
    if (!text) return tl::unexpected(text.error());
    const bool is_text = member == &Child::text;
    child.*member = budget.take(*text, is_text ? kMaxText : kMaxName, is_text);
  }
  return child;
}

}  // namespace

kube::Result<Stacks> read_stacks(const kube::Json& dump) {
  if (!dump.is_object()) return kube::fail(kube::ErrorCode::kInvalid, "`dump` must be an object");
  Stacks stacks;
  Budget budget;
  const kube::Json& id = dump.get("id");
  if (!id.is_string()) return wrong("id", "a string");
  stacks.id = budget.take(id.as_string(), kMaxName);
  const auto threads = items_of(dump, "threads");
  if (!threads) return tl::unexpected(threads.error());
  for (const kube::Json& item : **threads) {
    if (stacks.threads.size() == kMaxThreads || budget.is_used_up()) break;
    auto thread = read_thread(item, budget);
    if (!thread) return tl::unexpected(thread.error());
    stacks.threads.push_back(std::move(*thread));
  }
  const auto children = items_of(dump, "children");
  if (!children) return tl::unexpected(children.error());
  for (const kube::Json& item : **children) {
    if (stacks.children.size() == kMaxChildren || budget.is_used_up()) break;
    auto child = read_child(item, budget);
    if (!child) return tl::unexpected(child.error());
    stacks.children.push_back(std::move(*child));
  }
  return stacks;
}

Summary summary_of(const Stacks& stacks) {
  Summary summary;
  const auto main = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                 [](const Thread& thread) { return thread.is_main; });
  if (main == stacks.threads.end() || main->frames.empty()) return summary;
  summary.wait = wait_of_frames(main->frames);
  summary.line = users_line(main->frames);
  if (summary.line.empty()) summary.line = main->frames.front();
  if (summary.wait == Wait::kAway) find_helper(stacks, main->frames, summary);
  return summary;
}

Wait wait_of(std::string_view top, std::string_view leaf) {
  if (leaf.empty()) return Wait::kUnknown;
  if (is_collective(leaf)) return Wait::kWaiting;
  return top == leaf && is_users(leaf) ? Wait::kAway : Wait::kUnknown;
}

std::string line_by_signal(std::string_view text) {
  for (const SignalStack& stack : signal_stacks(text))
    if (const std::string_view line = users_line(stack.frames); !line.empty())
      return std::string(line);
  return {};
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string_view rest = kube::head_of(text, limit);
  if (kube::is_plain_line(rest)) return std::string(rest);
  std::string clean;
  clean.reserve(rest.size());
  while (!rest.empty()) {
    const kube::Character next = kube::first_character(rest);
    const bool is_bad =
        next.is_hidden || next.code == '\n' || next.code == '\t' || kube::utf8_length(rest) == 0;
    if (is_bad)
      clean += '?';
    else
      clean += rest.substr(0, next.bytes);
    rest.remove_prefix(next.bytes);
  }
  return clean;
}

kube::Json json_of(const Stacks& stacks) {
  kube::Json::Array threads, children;
  for (const Thread& thread : stacks.threads) {
    kube::Json::Array frames(thread.frames.begin(), thread.frames.end());
    threads.push_back(kube::Json::object({{"name", thread.name},
                                          {"main", thread.is_main},
                                          {"state", thread.state},
                                          {"wchan", thread.wchan},
                                          {"frames", std::move(frames)}}));
  }
  for (const Child& child : stacks.children)
    children.push_back(kube::Json::object({{"pid", child.pid},
                                           {"command", child.command},
                                           {"state", child.state},
                                           {"wchan", child.wchan},
                                           {"text", child.text}}));
  return kube::Json::object({{"threads", std::move(threads)}, {"children", std::move(children)}});
}

std::size_t bytes_of(const Stacks& stacks) {
  std::size_t bytes = sizeof(Stacks) + stacks.id.capacity();
  for (const Thread& thread : stacks.threads) {
    bytes +=
        sizeof(Thread) + thread.name.capacity() + thread.state.capacity() + thread.wchan.capacity();
    for (const std::string& frame : thread.frames) bytes += sizeof(std::string) + frame.capacity();
  }
  for (const Child& child : stacks.children)
    bytes += sizeof(Child) + child.command.capacity() + child.state.capacity() +
             child.wchan.capacity() + child.text.capacity();
  return bytes;
}

}  // namespace trainer::stall
