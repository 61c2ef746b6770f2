// Captures standard error, such as log lines, while it exists.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace trainer::test {

class CapturedErrors {
 public:
  CapturedErrors() : before_(dup(STDERR_FILENO)), file_(std::tmpfile(), &std::fclose) {
    if (file_) dup2(fileno(file_.get()), STDERR_FILENO);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  ~CapturedErrors() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }

  std::string text() const {
    std::string all;
    char piece[4096];
    // By position: the writers share the file offset.
    while (file_) {
      const auto got =
          pread(fileno(file_.get()), piece, sizeof piece, static_cast<off_t>(all.size()));
      if (got <= 0) break;
      all.append(piece, static_cast<std::size_t>(got));
    }
    return all;
  }
  // Returns how often the text contains `what`.
  std::size_t count(std::string_view what) const {
    const std::string all = text();
    std::size_t found = 0;
    for (auto at = all.find(what); at != all.npos; at = all.find(what, at + what.size())) ++found;
    return found;
  }

 private:
  int before_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace trainer::test
