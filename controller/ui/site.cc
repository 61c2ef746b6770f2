#include "controller/ui/site.hh"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>

#include "controller/ui/assets.hh"
#include "controller/ui/views.hh"
#include "kube/model/digest.hh"
#include "kube/model/text.hh"

namespace trainer::ui {

using kube::ServerRequest;
using kube::ServerResponse;
using kube::Task;

namespace {

constexpr std::string_view kCookie = "trainer-ui";
constexpr std::string_view kOpen = "/open";

std::string random_name() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("OpenSSL has no random numbers");
  return kube::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The time that it takes does not say how much of a guess is right.
bool is_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string decoded(std::string_view text) {
  const auto digit = [](char c) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    return kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) < 16 && digit(text[i + 2]) < 16;
    if (is_escaped) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// Calls `act(word)` for each word between these characters.
template <class Act>
void for_each_word(std::string_view text, char between, const Act& act) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    act(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

ServerResponse asset(std::string_view type, std::string_view text) {
  return {200, fmt::format("{}; charset=utf-8", type), std::string(text)};
}

}  // namespace

Parameters read_parameters(std::string_view query) {
  Parameters parameters;
  for_each_word(query, '&', [&parameters](std::string_view word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    parameters[decoded(word.substr(0, equals))] =
        decoded(word.substr(std::min(equals + 1, word.size())));
  });
  return parameters;
}

std::vector<std::pair<std::string, std::string>> answer_headers() {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

Site::Site(Options options)
    : options_(std::move(options)), folder_("/" + random_name() + "/"), token_(random_name()) {}

std::string Site::new_address() {
  key_ = kube::Secret<std::string>(random_name());
  return fmt::format("http://127.0.0.1:{}{}?key={}", port_, kOpen, key_.reveal());
}

// The Host header is that of the address which the browser has opened: a name of another site that
// leads to this machine is refused (DNS rebinding).
std::string Site::refusal_of(const ServerRequest& request) const {
  const std::string port = fmt::format(":{}", port_);
  const bool is_address = request.host == "127.0.0.1" + port || request.host == "localhost" + port;
  if (!is_address) return "this server is 127.0.0.1" + port + ", and the request is for another";
  if (request.path == kOpen)
    return {};  // a link in another page, such as a terminal's, may lead here
  const bool is_own = request.origin.empty() || request.origin == "http://" + request.host;
  const std::string& site = request.fetch_site;
  if (!is_own || !(site.empty() || site == "same-origin" || site == "none"))
    return "another site may not read this one";
  if (!request.path.starts_with(folder_) || !has_cookie(request.cookie.reveal()))
    return "open the address that `trainer ui` has printed; each works once";
  return {};
}

bool Site::has_cookie(std::string_view cookies) const {
  bool is_known = false;
  for_each_word(cookies, ';', [this, &is_known](std::string_view word) {
    word = kube::trimmed(word);
    const std::size_t equals = std::min(word.find('='), word.size());
    if (word.substr(0, equals) == kCookie && equals < word.size())
      is_known = is_known || is_equal(word.substr(equals + 1), token_.reveal());
  });
  return is_known;
}

// A browser does not send the cookie with a redirect that began in another site, so this is an
// answer after which it goes on by itself.
ServerResponse Site::open(const ServerRequest& request) {
  const auto parameters = read_parameters(request.query);
  const auto key = parameters.find("key");
  const bool is_right =
      key != parameters.end() && !key_.reveal().empty() && is_equal(key->second, key_.reveal());
  if (!is_right)
    return ServerResponse::text(403,
                                "this address was used, or is not the last one that `trainer "
                                "ui` has printed: each works once\n");
  ServerResponse opened = ServerResponse::text(200, "The page comes now.\n");
  if (request.method == "HEAD") return opened;
  key_ = {};
  opened.headers = {{"Set-Cookie", fmt::format("{}={}; Path={}; HttpOnly; SameSite=Strict", kCookie,
                                               token_.reveal(), folder_)},
                    {"Refresh", "0; url=" + folder_}};
  options_.on_opened();
  return opened;
}

Task<ServerResponse> Site::show(Read read, ServerRequest request) {
  auto parameters = read_parameters(request.query);
  const bool is_part = parameters.erase("part") > 0;
  const auto search = parameters.find("search");
  const std::string searched = search == parameters.end() ? "" : search->second;
  const View view = co_await read(std::move(parameters));
  ServerResponse answer{view.status, "text/html; charset=utf-8"};
  Html html;
  if (is_part) view.write(html);
  answer.body = is_part ? html.take() : document(view.title, searched, view.write);
  co_return answer;
}

Task<ServerResponse> Site::handle(ServerRequest request) {
  const std::string refusal = refusal_of(request);
  if (!refusal.empty()) co_return ServerResponse::text(403, refusal + "\n");
  if (request.method != "GET" && request.method != "HEAD") {
    ServerResponse refused = ServerResponse::text(405, "this server is read-only\n");
    refused.headers = {{"Allow", "GET, HEAD"}};
    co_return refused;
  }
  if (request.path == kOpen) co_return open(request);
  const std::string page = request.path.substr(folder_.size());
  if (page == "style.css") co_return asset("text/css", kStyle);
  if (page == "script.js") co_return asset("text/javascript", kScript);
  if (page.empty()) co_return co_await show(options_.list, std::move(request));
  if (page == "job") co_return co_await show(options_.job, std::move(request));
  co_return ServerResponse::text(404, "there is no such page\n");
}

}  // namespace trainer::ui
