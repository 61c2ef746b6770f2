#include "controller/cli/stacks_report.hh"

#include <fmt/format.h>

#include <string_view>

#include "controller/cli/terminal_text.hh"

namespace trainer {
namespace {

using kube::Json;

// Returns " (sleeps, in futex_wait)"; "" if nothing is known.
std::string state_of(const Json& process) {
  const std::string_view state = process.get_string("state");
  const std::string_view where = process.get_string("wchan");
  if (state.empty()) return {};
  if (where.empty() || where == "0") return fmt::format(" ({})", state);
  return fmt::format(" ({}, {})", state, where);
}

void add_thread(const Json& thread, std::string& text) {
  const std::string_view name = thread.get_string("name", "without name");
  text +=
      fmt::format("  {}{}{}\n", thread.get_bool("main") ? "" : "thread ", name, state_of(thread));
  if (thread.get_array("frames").empty()) text += "    no Python frame\n";
  for (const Json& frame : thread.get_array("frames"))
    if (frame.is_string()) text += fmt::format("    {}\n", frame.as_string());
}

void add_child(const Json& child, std::string& text) {
  text += fmt::format("  process {} {}{}\n", child.get_int("pid"), child.get_string("command"),
                      state_of(child));
  std::string_view lines = child.get_string("text");
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("    {}\n", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

void add_rank(const Json& rank, std::string& text) {
  text +=
      fmt::format("rank {} (pod {}, node {}){}\n", rank.get_int("rank"), rank.get_string("pod"),
                  rank.get_string("node"), rank.get_bool("waiting") ? ", waits for others" : "");
  for (const Json& thread : rank.get_array("threads")) add_thread(thread, text);
  for (const Json& child : rank.get_array("children")) add_child(child, text);
}

}  // namespace

std::string stacks_text(const Json& stacks) {
  std::string text;
  for (const Json& rank : stacks.get_array("ranks")) {
    if (!text.empty()) text += "\n";
    add_rank(rank, text);
  }
  if (const auto left_out = stacks.get_int("leftOut"); left_out > 0)
    text += fmt::format("\nThere was no room for the stacks of {} more ranks.\n", left_out);
  return printable(text, TerminalText::kPlain);
}

}  // namespace trainer
