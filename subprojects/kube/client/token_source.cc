#include "kube/client/token_source.hh"

#include <algorithm>
#include <utility>

#include "kube/client/read_file.hh"

namespace kube {

namespace {

constexpr std::chrono::minutes kCheckEvery{1};

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

TokenSource::TokenSource(Secret<std::string> token, std::string file) : file_(std::move(file)) {
  set(token.reveal());
}

void TokenSource::set(const std::string& token) {
  // Any other character would end the header line, or continue into the next one.
  if (is_token(token)) authorization_ = Secret<std::string>("Bearer " + token);
}

const Secret<std::string>& TokenSource::authorization(Now now) {
  if (!file_.empty() && (!was_read_ || now - read_at_ >= kCheckEvery)) refresh(now);
  return authorization_;
}

bool TokenSource::refresh(Now now) {
  if (file_.empty()) return false;
  was_read_ = true;
  read_at_ = now;
  std::string text = read_file(file_).value_or("");
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  const std::string before = authorization_.reveal();
  set(text);
  return authorization_.reveal() != before;
}

bool TokenSource::has_other_than(const Secret<std::string>& sent, Now now) {
  refresh(now);
  return authorization_.reveal() != sent.reveal();
}

}  // namespace kube
