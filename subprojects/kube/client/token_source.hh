// The bearer token, as fresh as its file.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "kube/model/secret.hh"

namespace kube {

// What a request may carry: no blanks, no line breaks.
bool is_token(std::string_view text);

// A file that cannot be read, or holds something that is no token, leaves the last good one in use.
class TokenSource {
 public:
  using Now = std::chrono::steady_clock::time_point;
  TokenSource(Secret<std::string> token, std::string file);
  // "Bearer ...", or "" without a token. Looks into the file once a minute.
  const Secret<std::string>& authorization(Now now);
  // Looks into the file at once; true when the token has become another one.
  bool refresh(Now now);
  // After a 401 to a request that was sent with `sent`: reads the file, and is true when there is
  // now another token to try. (So also for the later ones of several requests that were refused
  // together, where the first has read the new token.)
  bool has_other_than(const Secret<std::string>& sent, Now now);

  // Takes another token, without a file. What is no token is passed over.
  void set(const std::string& token);

 private:
  std::string file_;
  Secret<std::string> authorization_;
  Now read_at_{};
  bool was_read_ = false;
};

}  // namespace kube
