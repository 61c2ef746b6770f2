// The bearer token is read again when its file changes.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "kube/model/secret.hh"

namespace kube {

// Returns whether a request may carry the text: it has no blanks and no line breaks.
bool is_token(std::string_view text);

// If a file cannot be read, or holds something that is no token, the last good one stays in use.
class TokenSource {
 public:
  using Now = std::chrono::steady_clock::time_point;
  TokenSource(Secret<std::string> token, std::string file);
  // Returns "Bearer ...", or "" without a token. Reads the file once a minute.
  const Secret<std::string>& authorization(Now now);
  // Reads the file at once; returns true if the token has become another one.
  bool refresh(Now now);
  // It is called after a 401 to a request that was sent with `sent`. Reads the file, and returns
  // true if there is now another token to try. (If several requests were refused together and the
  // first has read the new token, it also returns true for the others.)
  bool has_other_than(const Secret<std::string>& sent, Now now);

  // Sets another token, without a file. A text that is no token is ignored.
  void set(const std::string& token);

 private:
  std::string file_;
  Secret<std::string> authorization_;
  Now read_at_{};
  bool was_read_ = false;
};

}  // namespace kube
