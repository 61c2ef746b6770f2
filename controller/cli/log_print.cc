#include "controller/cli/log_print.hh"

#include <ostream>

#include "controller/cli/terminal_text.hh"

namespace trainer {

std::string plain_text(std::string_view text) {
  return printable(text, TerminalText::kPlain);
}

std::string text_for_output(const std::string& text, const Console& console) {
  return console.is_terminal ? printable(text, TerminalText::kLog) : text;
}

PrintLine log_printer(const LogsOptions& options, Console& console) {
  return [&console, with_time = options.has_timestamps, is_live = options.is_followed](
             const LogPod& pod, std::string_view container, const LogLine& line) {
    console.out << pod.prefix(container) << ' ';
    if (with_time && !line.timestamp.empty()) console.out << line.timestamp << ' ';
    console.logs << text_for_output(line.text, console) << '\n';
    if (is_live) console.out << std::flush;
  };
}

}  // namespace trainer
