// Answers the browser of one user: it lets no one else in, and shows pages that others render.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ui/html.hh"
#include "kube/client/http_server.hh"
#include "kube/model/secret.hh"

namespace trainer::ui {

using Parameters = std::map<std::string, std::string, std::less<>>;

// Reads "a=b&c=d%20e".
Parameters read_parameters(std::string_view query);

// Each answer has these headers: nothing is loaded from elsewhere, no script is in a page, no other
// site may frame or read a page, and nothing is kept on a disk.
std::vector<std::pair<std::string, std::string>> answer_headers();

// This is what a view has read.
struct View {
  int status = 200;
  std::string title;
  std::function<void(Html&)> write;  // writes the changing part of the page
};

// A browser opens an address with a key that works once, and gets a cookie. All pages are in a
// folder with a random name: browsers send a cookie to each port of a machine, but only below its
// path, so that other programs of the machine do not get it. Concurrency: one thread.
class Site {
 public:
  using Read = std::function<kube::Task<View>(Parameters parameters)>;
  struct Options {
    Read list;
    Read job;
    std::function<void()> on_opened;  // a key was used
  };
  explicit Site(Options options);

  // Call this before the first request. Requests for other ports are refused.
  void set_port(unsigned short port) { port_ = port; }
  // Makes a key, which replaces the last one, and returns the address to open.
  std::string new_address();
  kube::Task<kube::ServerResponse> handle(kube::ServerRequest request);

 private:
  // Returns why a request is refused; "" if it is not.
  std::string refusal_of(const kube::ServerRequest& request) const;
  bool has_cookie(std::string_view cookies) const;
  kube::ServerResponse open(const kube::ServerRequest& request);
  kube::Task<kube::ServerResponse> show(Read read, kube::ServerRequest request);

  const Options options_;
  const std::string folder_;  // "/NAME/"
  const kube::Secret<std::string> token_;
  kube::Secret<std::string> key_;  // "" if it was used
  unsigned short port_ = 0;
};

}  // namespace trainer::ui
