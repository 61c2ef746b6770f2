// These are the streams of a subcommand. Everything that it prints goes through them, so that no
// text of an object or of an argument can act on the terminal, or be shown differently from its
// content.
#pragma once

#include <istream>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>

namespace trainer {

// Writes the result of printable() for a text to another stream at once. The end of a write may be
// the beginning of a character: that waits for the next write, or for a flush.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::ostream& to) : to_(to) {}
  ~PrintableBuffer() override { print_pending(); }

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool print(std::string_view text);
  bool print_pending();

  std::ostream& to_;
  std::string pending_;
};

class PrintableStream : private PrintableBuffer, public std::ostream {
 public:
  explicit PrintableStream(std::ostream& to)
      : PrintableBuffer(to), std::ostream(static_cast<PrintableBuffer*>(this)) {}
};

// Tests replace the streams. They outlive the console.
class Console {
 public:
  Console(std::istream& input, std::ostream& output, std::ostream& errors,
          std::string name = "trainer", bool is_output_terminal = false)
      : printable_output_(output),
        printable_errors_(errors),
        in(input),
        out(printable_output_),
        err(printable_errors_),
        logs(output),
        program(std::move(name)),
        is_terminal(is_output_terminal) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

 private:
  PrintableStream printable_output_;
  PrintableStream printable_errors_;

 public:
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  std::ostream& logs;   // the same as `out`, for the text of logs alone: see text_for_output()
  std::string program;  // "trainer" or "kubectl trainer", for advice
  bool is_terminal;     // `out` is a terminal
};

}  // namespace trainer
